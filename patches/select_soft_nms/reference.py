"""Soft non-maximum suppression in NumPy, one taken box after the other."""

from __future__ import annotations

from typing import Any

import numpy as np


def select_soft_nms(args: Any) -> None:
    """Take the best candidate and let the scores of those that it overlaps decay, again and again.

    Equal scores are taken by anchor and then class; with `class_aware` only scores of its class
    decay. Reads the candidates port (boxes in model px) and the geometry; writes the detections
    port (decayed scores, boxes in frame px, clipped to the frame).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        boxes = args.candidates_boxes[n, :count]
        classes = args.candidates_classes[n, :count]
        anchors = args.candidates_anchors[n, :count]
        scores = args.candidates_scores[n, :count].copy()
        alive = scores > np.float32(args.min_score)
        args.detections_boxes[n] = 0
        args.detections_scores[n] = 0
        args.detections_classes[n] = 0
        args.detections_anchors[n] = -1
        rows = 0
        while alive.any() and rows < min(args.max_detections, args.M):
            open_ = np.flatnonzero(alive)
            best = open_[np.lexsort((classes[open_], anchors[open_], -scores[open_]))[0]]
            args.detections_boxes[n, rows] = to_frame(boxes[best], args.geometry[n])
            args.detections_scores[n, rows] = scores[best]
            args.detections_classes[n, rows] = classes[best]
            args.detections_anchors[n, rows] = anchors[best]
            rows += 1
            alive[best] = False
            reached = alive & (classes == classes[best]) if args.class_aware else alive
            scores[reached] *= factors(args, overlaps(boxes[best], boxes[reached]))
            alive &= scores > np.float32(args.min_score)
        args.detections_count[n] = rows
        args.detections_counters[n] = count, rows, 0, alive.sum(), args.candidates_nans[n]


def factors(args: Any, overlap: np.ndarray) -> np.ndarray:
    """`[K]` float32, by what scores are multiplied for overlaps `[K]`."""
    if args.method == "gaussian":
        return np.exp(-(overlap * overlap) / np.float32(args.sigma))
    return np.where(overlap > np.float32(args.iou_threshold), 1 - overlap, np.float32(1))


def overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`[K]` IoU of one box `[4]` with `[K, 4]`, float32; 0 where there is no area in common."""
    least, most = np.minimum(box, others), np.maximum(box, others)
    width, height = least[:, 2] - most[:, 0], least[:, 3] - most[:, 1]
    meet = (width > 0) & (height > 0)
    common = np.where(meet, width * height, np.float32(0))
    area, areas = ((b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (box, others))
    return np.divide(common, area + areas - common, out=np.zeros_like(common), where=meet)


def to_frame(boxes: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    return np.clip((boxes - corner) * scale, 0, size)
