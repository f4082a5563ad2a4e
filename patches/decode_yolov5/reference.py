"""YOLOv5-like head with decoded boxes to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_yolov5(args: Any) -> None:
    """Append the anchors for which objectness times the best class is above the threshold.

    `args.head` is `[N, A, 5 + C]`: cx cy w h in model px, objectness, class scores. Of equal
    classes the lowest index is the best.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            centre, half = head[:, :2], head[:, 2:4] * np.float32(0.5)
            boxes = np.concatenate([centre - half, centre + half], axis=1)
            scores = head[:, 4] * head[:, 5:].max(axis=1)
        append(args, n, boxes=boxes, scores=scores, classes=head[:, 5:].argmax(axis=1))
