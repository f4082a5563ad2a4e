"""YOLOv8-like head of turned boxes to candidates, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import append


def decode_yolov8_obb(args: Any) -> None:
    """Append the anchors whose best class scores above the threshold, with their rectangles.

    `args.head` is `[N, 4 + C + 1, A]`: cx cy w h in model px, class scores, and an angle in
    radians. A candidate's box is the upright one around its rectangle. Of equal classes the lowest
    index is the best.
    """
    for n in range(args.N):
        head = args.head[n].astype(np.float32)
        centre, size, scores, angle = head[:2], head[2:4], head[4:-1], head[-1]
        with np.errstate(invalid="ignore", over="ignore"):
            cosine, sine = np.abs(np.cos(angle)), np.abs(np.sin(angle))
            around = size * cosine + size[::-1] * sine
            boxes = np.concatenate([centre - around / 2, centre + around / 2]).T
        best = scores.max(axis=0)
        above = best > np.float32(args.score_threshold)
        args.rectangles[n, above] = head[[0, 1, 2, 3, -1]].T[above]
        append(args, n, boxes=boxes, scores=best, classes=scores.argmax(axis=0))
