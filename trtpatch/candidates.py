"""Filling the candidates port from a NumPy reference, as `append` in common.cuh does on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np


def append(
    args: Any,
    image: int,
    *,
    boxes: np.ndarray[Any, Any],
    scores: np.ndarray[Any, Any],
    classes: np.ndarray[Any, Any],
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
