"""YuNet heads to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_yunet(args: Any) -> None:
    """Append the anchors for which sqrt(best class * objectness) is above the threshold.

    A level has `args.classes` `[N, P, C]`, `args.objectness` `[N, P, 1]` and `args.boxes`
    `[N, P, 4]` x y in strides from the cell's corner, w h as logarithms of sizes in strides. Of
    equal classes the lowest index is the best.
    """
    heights, widths = ([m // s for s in args.strides] for m in (args.model_H, args.model_W))
    cells, strides = heads.grid(heights, widths, args.strides)
    for n in range(args.N):
        classes, boxes = heads.rows(args.classes, n), heads.rows(args.boxes, n)
        with np.errstate(invalid="ignore", over="ignore"):
            scores = np.sqrt(classes.max(axis=1) * heads.rows(args.objectness, n)[:, 0])
            centre, size = (boxes[:, :2] + cells) * strides, np.exp(boxes[:, 2:]) * strides
        append(
            args,
            n,
            boxes=heads.from_centres(centre, size),
            scores=scores,
            classes=classes.argmax(axis=1),
        )
