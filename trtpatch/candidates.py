"""What NumPy references of patches that decode and that select share: filling the ports.

Kernels have the same in common.cuh and detections.cuh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def append(
    args: Any,
    image: int,
    *,
    boxes: Array,
    scores: Array,
    classes: Array,
) -> None:
    """Give an image's candidates: the anchors that score above `args.score_threshold`.

    An anchor whose score is NaN, or that is above the threshold with a NaN in its box, is dropped
    and counted in `args.candidates_nans`.

    Args:
        args: of a patch that gives the port `candidates` and has the parameter `score_threshold`.
        image: index in the batch.
        boxes: `[A, 4]` float32, x1 y1 x2 y2 in model pixels.
        scores: `[A]` float32.
        classes: `[A]` int.
    """
    above = scores > np.float32(args.score_threshold)
    nan = np.isnan(scores) | (above & np.isnan(boxes).any(axis=1))
    anchors = np.flatnonzero(above & ~nan)
    count = len(anchors)
    args.candidates_boxes[image, :count] = boxes[anchors]
    args.candidates_scores[image, :count] = scores[anchors]
    args.candidates_classes[image, :count] = classes[anchors]
    args.candidates_anchors[image, :count] = anchors
    args.candidates_count[image] = count
    args.candidates_nans[image] = nan.sum()


def in_order(args: Any, image: int, slots: Array) -> Array:
    """Rows of candidates by score from the highest, equal ones by anchor, then by class.

    Args:
        args: of a patch that takes the port `candidates`.
        image: index in the batch.
        slots: `[K]` int, rows of the port.

    Returns:
        `[K]` int, the same in order.
    """
    keys = args.candidates_classes, args.candidates_anchors, -args.candidates_scores
    order: Array = slots[np.lexsort([key[image, slots] for key in keys])]
    return order


def by_class(classes: Array, values: Sequence[float], otherwise: float) -> Array:
    """`[K]` float32, for each of `[K]` int classes its value, or `otherwise` past the end."""
    table = np.array([*values, otherwise], np.float32)
    found: Array = table[np.minimum(classes, len(values))]
    return found


def give_detections(
    args: Any,
    image: int,
    slots: Array,
    *,
    candidates: int,
    dropped_topk: int = 0,
    dropped_max: int = 0,
    scores: Array | None = None,
) -> None:
    """Fill an image's part of the detections port.

    Args:
        args: of a patch that takes the ports `candidates` and `geometry` and gives `detections`.
        image: index in the batch.
        slots: `[K]` rows of the candidates, in their order; K is at most `args.M`.
        candidates, dropped_topk, dropped_max: for the counters.
        scores: `[K]` float32 in place of the candidates' own.
    """
    rows = len(slots)
    args.detections_boxes[image] = 0
    args.detections_scores[image] = 0
    args.detections_classes[image] = 0
    args.detections_anchors[image] = -1
    boxes = args.candidates_boxes[image, slots]
    args.detections_boxes[image, :rows] = _to_frame(boxes, args.geometry[image])
    args.detections_scores[image, :rows] = (
        args.candidates_scores[image, slots] if scores is None else scores
    )
    args.detections_classes[image, :rows] = args.candidates_classes[image, slots]
    args.detections_anchors[image, :rows] = args.candidates_anchors[image, slots]
    args.detections_count[image] = rows
    nans = args.candidates_nans[image]
    args.detections_counters[image] = candidates, rows, dropped_topk, dropped_max, nans


def _to_frame(boxes: Array, geometry: Array) -> Array:
    """Model px to frame px, `[K, 4]` each, clipped to the frame."""
    scale, corner, size = (np.tile(geometry[i : i + 2], 2) for i in (0, 2, 4))
    frame: Array = np.clip((boxes - corner) * scale, 0, size)
    return frame
