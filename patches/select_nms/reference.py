"""Greedy non-maximum suppression in NumPy, one kept box after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import by_class, give_detections, in_order


def select_nms(args: Any) -> None:
    """Keep a candidate unless a kept one before it overlaps it by more than the threshold.

    Before means a higher score, or the same and a lower anchor; with `class_aware` only those of
    its class count. Candidates that are not above the score threshold of their class take no part.
    Reads the candidates port (boxes in model px) and the geometry; writes the detections port
    (boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        classes = args.candidates_classes[n, :count]
        least = by_class(classes, args.class_score_thresholds, -np.inf)
        passed = in_order(args, n, np.flatnonzero(args.candidates_scores[n, :count] > least))
        order = passed[: args.pre_nms_topk] if args.pre_nms_topk > 0 else passed
        classes = args.candidates_classes[n, order]
        thresholds = by_class(classes, args.class_iou_thresholds, args.iou_threshold)
        groups = classes if args.class_aware else np.zeros_like(classes)
        alive = np.zeros(len(order), bool)
        for group in np.unique(groups):
            members = groups == group
            boxes = args.candidates_boxes[n, order[members]]
            alive[members] = greedy(boxes, thresholds[members], args.metric == "diou")
        kept = order[alive]
        found = kept[: min(args.max_detections, args.M)]
        give_detections(
            args,
            n,
            found,
            candidates=len(passed),
            dropped_topk=len(passed) - len(order),
            dropped_max=len(kept) - len(found),
        )


def greedy(boxes: np.ndarray, thresholds: np.ndarray, less_distance: bool) -> np.ndarray:
    """`[K]` bool, which of `[K, 4]` float32 boxes are kept; the best come first.

    The overlap is torchvision's, step by step in float32; two boxes without area have none.
    """
    x1, y1, x2, y2 = np.ascontiguousarray(boxes.T)
    alive = np.ones(len(boxes), bool)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        area = (x2 - x1) * (y2 - y1)
        for i in range(len(boxes)):
            if alive[i]:
                rest = slice(i + 1, None)
                width = np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest])
                height = np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest])
                common = np.maximum(width, 0) * np.maximum(height, 0)
                overlap = common / (area[i] + area[rest] - common)
                if less_distance:
                    overlap -= distance(boxes[i], boxes[rest])
                alive[rest] &= ~(overlap > thresholds[rest])
    return alive


def distance(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`[K]`, squared distance of centres by squared diagonal of the box around both."""
    x1, y1, x2, y2 = others.T
    x, y = (x1 + x2) - (box[0] + box[2]), (y1 + y2) - (box[1] + box[3])
    width = np.maximum(box[2], x2) - np.minimum(box[0], x1)
    height = np.maximum(box[3], y2) - np.minimum(box[1], y1)
    return (x * x + y * y) * np.float32(0.25) / (width * width + height * height)
