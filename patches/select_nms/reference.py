"""Greedy non-maximum suppression in NumPy, one kept box after the other."""

from __future__ import annotations

from typing import Any

import numpy as np


def select_nms(args: Any) -> None:
    """Keep a candidate unless a kept one before it overlaps it with an IoU above the threshold.

    Before means a higher score, or the same and a lower anchor; with `class_aware` only those of
    its class count. Reads the candidates port (boxes in model px) and the geometry; writes the
    detections port (boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        keys = args.candidates_classes, args.candidates_anchors, -args.candidates_scores
        order = np.lexsort([key[n, :count] for key in keys])
        if args.pre_nms_topk > 0:
            order = order[: args.pre_nms_topk]
        boxes = args.candidates_boxes[n, order]
        classes = args.candidates_classes[n, order]
        groups = classes if args.class_aware else np.zeros_like(classes)
        alive = np.zeros(len(order), bool)
        for group in np.unique(groups):
            members = groups == group
            alive[members] = greedy(boxes[members], np.float32(args.iou_threshold))
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
            count, rows, count - len(order), len(kept) - rows, args.candidates_nans[n]
        )  # fmt: skip


def greedy(boxes: np.ndarray, threshold: np.float32) -> np.ndarray:
    """`[K]` bool, which of `[K, 4]` float32 boxes are kept; the best come first.

    The overlap is torchvision's, step by step in float32; two boxes without area have none.
    """
    x1, y1, x2, y2 = np.ascontiguousarray(boxes.T)
    alive = np.ones(len(boxes), bool)
    with np.errstate(invalid="ignore", over="ignore"):
        area = (x2 - x1) * (y2 - y1)
        for i in range(len(boxes)):
            if alive[i]:
                rest = slice(i + 1, None)
                width = np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest])
                height = np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest])
                common = np.maximum(width, 0) * np.maximum(height, 0)
                alive[rest] &= ~(common / (area[i] + area[rest] - common) > threshold)
    return alive


def to_frame(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, `[K, 4]` each, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    return np.clip((boxes - corner) * scale, 0, size)
