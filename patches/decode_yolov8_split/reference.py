"""YOLOv8-like raw heads, boxes and classes apart, to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch import heads
from trtpatch.candidates import append


def decode_yolov8_split(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    A level has `args.boxes` `[N, 4 * R, H, W]`, for the left, top, right and bottom of a box logits
    over R bins of one stride each (R = 1: the distance itself, in strides), and `args.classes`
    `[N, C, H, W]` logits. Of equal classes the lowest index is the best.
    """
    cells, strides = heads.grid(args.H, args.W, [args.model_H // height for height in args.H])
    for n in range(args.N):
        logits = heads.rows(args.classes, n)
        distances = heads.expectation(heads.rows(args.boxes, n).reshape(-1, 4, args.R))
        append(
            args,
            n,
            boxes=heads.from_sides((cells + np.float32(0.5)) * strides, distances * strides),
            scores=heads.sigmoid(logits.max(axis=1)),
            classes=logits.argmax(axis=1),
        )
