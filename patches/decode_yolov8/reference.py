"""YOLOv8-like head with decoded boxes to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_yolov8(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    `args.head` is `[N, 4 + C + K, A]`: cx cy w h in model px, class scores, and K columns that are
    not looked at. Of equal classes the lowest index is the best.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            centre, half = head[:2], head[2:4] * np.float32(0.5)
            boxes = np.concatenate([centre - half, centre + half]).T
        classes = head[4 : 4 + args.C]
        scores = classes.max(axis=0)
        append(args, n, boxes=boxes, scores=scores, classes=classes.argmax(axis=0))
