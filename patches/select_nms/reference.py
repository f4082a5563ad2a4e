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
        groups = np.unique(classes) if args.class_aware else [None]
        survivors = [
            greedy(boxes, np.flatnonzero((classes == group) | (group is None)), args.iou_threshold)
            for group in groups
        ]
        kept = np.sort(np.concatenate([np.zeros(0, int), *survivors]))
        found = kept[: args.M]
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


def greedy(boxes: np.ndarray, open_: np.ndarray, threshold: float) -> np.ndarray:
    """Indices that are kept of `open_`, indices into `boxes` `[K, 4]`, the best first."""
    threshold = np.float32(threshold)
    kept = []
    while len(open_):
        kept.append(open_[0])
        open_ = open_[1:][~(iou(boxes[open_[0]], boxes[open_[1:]]) > threshold)]
    return np.array(kept, int)


def iou(box: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """`[K]` float32 overlaps of `[4]` with `[K, 4]`, as in torchvision; 0 where both are empty."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    common = np.maximum(high - low, 0).prod(axis=1)
    union = (box[2:] - box[:2]).prod() + (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) - common
    return np.divide(common, union, out=np.zeros_like(common), where=union != 0)


def to_frame(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, `[K, 4]` each, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    return np.clip((boxes - corner) * scale, 0, size)
