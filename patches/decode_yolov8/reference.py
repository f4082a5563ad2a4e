"""YOLOv8-like head with decoded boxes to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_yolov8(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold.

    `args.head` is `[N, 4 + C, A]`: cx cy w h in model px, then class scores. Of equal classes the
    lowest index is the best.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            centre, half = head[:2], head[2:4] * np.float32(0.5)
            boxes = np.concatenate([centre - half, centre + half]).T
        scores = head[4:].max(axis=0)
        append(args, n, boxes=boxes, scores=scores, classes=head[4:].argmax(axis=0))
