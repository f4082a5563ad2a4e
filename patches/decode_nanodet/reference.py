"""NanoDet heads, one row an anchor, to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_nanodet(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    A level has `args.classes` `[N, P, C]` scores and `args.boxes` `[N, P, 4 * R]`, for the left,
    top, right and bottom of a box logits over R bins of one stride each (R = 1: the distance
    itself, in strides). Of equal classes the lowest index is the best.
    """
    heights, widths = ([-(-m // s) for s in args.strides] for m in (args.model_H, args.model_W))
    cells, strides = heads.grid(heights, widths, args.strides)
    points = (cells + np.float32(args.offset)) * strides + np.float32(args.shift)
    for n in range(args.N):
        classes = heads.rows(args.classes, n)
        distances = heads.expectation(heads.rows(args.boxes, n).reshape(-1, 4, args.R))
        best = classes.max(axis=1)
        append(
            args,
            n,
            boxes=heads.from_sides(points, distances * strides),
            scores=heads.sigmoid(best) if args.scores == "logit" else best,
            classes=classes.argmax(axis=1),
        )
