"""Soft non-maximum suppression in NumPy, one taken box after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import give_detections


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
        taken: list[int] = []
        while alive.any() and len(taken) < min(args.max_detections, args.M):
            left = np.flatnonzero(alive)
            best = left[np.lexsort((classes[left], anchors[left], -scores[left]))[0]]
            taken.append(best)
            alive[best] = False
            reached = alive & (classes == classes[best]) if args.class_aware else alive
            scores[reached] *= factors(args, overlaps(boxes[best], boxes[reached]))
            alive &= scores > np.float32(args.min_score)
        slots = np.array(taken, int)
        dropped = int(alive.sum())
        give_detections(args, n, slots, candidates=count, dropped_max=dropped, scores=scores[slots])


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
