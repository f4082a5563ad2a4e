"""Greedy non-maximum suppression in NumPy, one kept box after the other."""

from __future__ import annotations

from typing import Any

import numpy as np


def select_nms(args: Any) -> None:
    """Keep a candidate unless a kept one before it overlaps it by more than the threshold.

    Before means a higher score, or the same and a lower anchor; with `class_aware` only those of
    its class count. Candidates that are not above the score threshold of their class take no part.
    Reads the candidates port (boxes in model px) and the geometry; writes the detections port
    (boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        slots = np.flatnonzero(
            args.candidates_scores[n, :count]
            > by_class(args.candidates_classes[n, :count], args.class_score_thresholds, -np.inf)
        )
        passed = len(slots)
        keys = args.candidates_classes, args.candidates_anchors, -args.candidates_scores
        order = slots[np.lexsort([key[n, slots] for key in keys])]
        if args.pre_nms_topk > 0:
            order = order[: args.pre_nms_topk]
        boxes = args.candidates_boxes[n, order]
        classes = args.candidates_classes[n, order]
        thresholds = by_class(classes, args.class_iou_thresholds, args.iou_threshold)
        groups = classes if args.class_aware else np.zeros_like(classes)
        alive = np.zeros(len(order), bool)
        for group in np.unique(groups):
            members = groups == group
            alive[members] = greedy(boxes[members], thresholds[members], args.metric == "diou")
        kept = np.flatnonzero(alive)
        found = kept[: min(args.max_detections, args.M)]
        rows = len(found)
        args.detections_boxes[n] = 0
        args.detections_scores[n] = 0
        args.detections_classes[n] = 0
        args.detections_anchors[n] = -1
        args.detections_boxes[n, :rows] = to_frame(boxes[found], args.geometry[n])
        args.detections_scores[n, :rows] = args.candidates_scores[n, order[found]]
        args.detections_classes[n, :rows] = classes[found]
        args.detections_anchors[n, :rows] = args.candidates_anchors[n, order[found]]
        args.detections_count[n] = rows
        args.detections_counters[n] = (
            passed, rows, passed - len(order), len(kept) - rows, args.candidates_nans[n]
        )  # fmt: skip


def by_class(classes: np.ndarray, values: tuple[float, ...], otherwise: float) -> np.ndarray:
    """`[K]` float32, for each of `[K]` classes its value, or `otherwise` past the end."""
    table = np.float32([*values, otherwise])
    return table[np.minimum(classes, len(values))]


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


def to_frame(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, `[K, 4]` each, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    return np.clip((boxes - corner) * scale, 0, size)
