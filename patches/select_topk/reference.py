"""The best candidates as they are, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def select_topk(args: Any) -> None:
    """Give the candidates with the highest scores, equal ones by anchor and then class.

    Reads the candidates port (boxes in model px) and the geometry; writes the detections port
    (boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        keys = args.candidates_classes, args.candidates_anchors, -args.candidates_scores
        order = np.lexsort([key[n, :count] for key in keys])
        best = order[: min(args.max_detections, args.M)]
        rows = len(best)
        args.detections_boxes[n] = 0
        args.detections_scores[n] = 0
        args.detections_classes[n] = 0
        args.detections_anchors[n] = -1
        args.detections_boxes[n, :rows] = to_frame(args.candidates_boxes[n, best], args.geometry[n])
        args.detections_scores[n, :rows] = args.candidates_scores[n, best]
        args.detections_classes[n, :rows] = args.candidates_classes[n, best]
        args.detections_anchors[n, :rows] = args.candidates_anchors[n, best]
        args.detections_count[n] = rows
        args.detections_counters[n] = count, rows, 0, count - rows, args.candidates_nans[n]


def to_frame(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, `[K, 4]` each, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    return np.clip((boxes - corner) * scale, 0, size)
