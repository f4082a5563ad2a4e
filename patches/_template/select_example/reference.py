"""What select_example means, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def select_example(args: Any) -> None:
    """Give the best `args.M` candidates, in frame pixels and clipped to the frame."""
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        keys = args.candidates_classes, args.candidates_anchors, -args.candidates_scores
        best = np.lexsort([key[n, :count] for key in keys])[: args.M]
        found = len(best)
        for name in ("boxes", "scores", "classes", "anchors"):
            getattr(args, f"detections_{name}")[n] = -1 if name == "anchors" else 0
        scale, corner, size = (np.tile(args.geometry[n, i : i + 2], 2) for i in (0, 2, 4))
        boxes = (args.candidates_boxes[n, best] - corner) * scale
        args.detections_boxes[n, :found] = np.clip(boxes, 0, size)
        args.detections_scores[n, :found] = args.candidates_scores[n, best]
        args.detections_classes[n, :found] = args.candidates_classes[n, best]
        args.detections_anchors[n, :found] = args.candidates_anchors[n, best]
        args.detections_count[n] = found
        args.detections_counters[n] = count, found, 0, count - found, args.candidates_nans[n]
