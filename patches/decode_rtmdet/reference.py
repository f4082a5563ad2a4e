"""Class and side distance maps to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_rtmdet(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    A level has `args.boxes` `[N, 4 * R, H, W]`, the distances of the left, top, right and bottom
    of a box (R > 1: logits over R bins of it), and `args.classes` `[N, C, H, W]` scores. Of equal
    classes the lowest index is the best.
    """
    cells, strides = heads.grid(args.H, args.W, [args.model_H // height for height in args.H])
    points = (cells + np.float32(args.offset)) * strides + np.float32(args.shift)
    for n in range(args.N):
        classes = heads.rows(args.classes, n)
        distances = heads.expectation(heads.rows(args.boxes, n).reshape(-1, 4, args.R))
        with np.errstate(over="ignore"):
            if args.distances == "log-strides":
                distances = np.exp(distances)
            if args.distances != "pixels":
                distances = distances * strides
        best = classes.max(axis=1)
        append(
            args,
            n,
            boxes=heads.from_sides(points, distances),
            scores=heads.sigmoid(best) if args.scores == "logit" else best,
            classes=classes.argmax(axis=1),
        )
