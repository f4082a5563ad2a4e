"""Greedy suppression of turned rectangles by ProbIoU, in NumPy, one kept one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from trtpatch.candidates import by_class, give_detections, in_order


def select_nms_rotated(args: Any) -> None:
    """Keep a candidate unless a kept one before it has a ProbIoU with it above the threshold.

    Before means a higher score, or the same and a lower anchor; with `class_aware` only those of
    its class count. Candidates that are not above the score threshold of their class take no part.
    Reads the candidates port and `args.rectangles` `[N, A, 5]` (model px) and the geometry; writes
    the detections port and `args.rotated` `[N, M, 5]` (frame px).
    """
    for n in range(args.N):
        count = min(int(args.candidates_count[n]), args.A)
        classes = args.candidates_classes[n, :count]
        least = by_class(classes, args.class_score_thresholds, -np.inf)
        passed = in_order(args, n, np.flatnonzero(args.candidates_scores[n, :count] > least))
        order = passed[: args.pre_nms_topk] if args.pre_nms_topk > 0 else passed
        classes = args.candidates_classes[n, order]
        rectangles = args.rectangles[n, args.candidates_anchors[n, order]]
        thresholds = by_class(classes, args.class_iou_thresholds, args.iou_threshold)
        groups = classes if args.class_aware else np.zeros_like(classes)
        alive = np.zeros(len(order), bool)
        for group in np.unique(groups):
            members = groups == group
            alive[members] = greedy(rectangles[members], thresholds[members])
        rows = min(int(alive.sum()), args.max_detections, args.M)
        give_detections(
            args,
            n,
            order[alive][:rows],
            candidates=len(passed),
            dropped_topk=len(passed) - len(order),
            dropped_max=int(alive.sum()) - rows,
        )
        args.rotated[n] = 0
        args.rotated[n, :rows] = to_frame(rectangles[alive][:rows], args.geometry[n])


def greedy(rectangles: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """`[K]` bool, which of `[K, 5]` float32 rectangles are kept; the best come first."""
    alive = np.ones(len(rectangles), bool)
    for i in range(len(rectangles)):
        if alive[i]:
            found = prob_iou(rectangles[i], rectangles[i + 1 :])
            alive[i + 1 :] &= ~(found > thresholds[i + 1 :])
    return alive


def prob_iou(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`[K]` ProbIoU of one rectangle `[5]` with `[K, 5]`, float32; none with one without area."""
    x, y = one[0] - others[:, 0], one[1] - others[:, 1]
    with np.errstate(all="ignore"):
        along, across, cosine, sine = shape(one)
        alongs, acrosses, cosines, sines = shape(others)
        parallel = (cosine * cosines + sine * sines) ** 2
        crossed = (sine * cosines - cosine * sines) ** 2
        determinant = along * across + alongs * acrosses
        determinant += parallel * (along * acrosses + across * alongs)
        determinant += crossed * (along * alongs + across * acrosses)
        means = (cosine * x + sine * y) ** 2 * across + (cosine * y - sine * x) ** 2 * along
        means += (cosines * x + sines * y) ** 2 * acrosses
        means += (cosines * y - sines * x) ** 2 * alongs
        roots = np.sqrt(along * across) * np.sqrt(alongs * acrosses)
        distance = means / (4 * determinant) + np.log(determinant / (4 * roots)) / 2
        return 1 - np.sqrt(-np.expm1(-np.maximum(distance, 0)))


def shape(rectangles: np.ndarray) -> tuple[np.ndarray, ...]:
    """Variances along and across rectangles `[..., 5]`, cosine and sine of their angles."""
    along, across = (rectangles[..., i] ** 2 / np.float32(12) for i in (2, 3))
    return along, across, np.cos(rectangles[..., 4]), np.sin(rectangles[..., 4])


def to_frame(rectangles: np.ndarray, geometry: np.ndarray) -> np.ndarray:
    """Model px to frame px, `[K, 5]` each, the angle brought to 0..pi / 2."""
    scale_x, scale_y, left, top = geometry[:4]
    x, y, width, height, angle = rectangles.T
    cosine, sine = np.cos(angle), np.sin(angle)
    width = width * np.hypot(cosine * scale_x, sine * scale_y)
    height = height * np.hypot(sine * scale_x, cosine * scale_y)
    angle = np.arctan2(sine * scale_y, cosine * scale_x)
    turns = np.floor(angle / np.float32(np.pi / 2))
    swapped = turns % 2 == 1
    sides = np.where(swapped, height, width), np.where(swapped, width, height)
    angle = angle - turns * np.float32(np.pi / 2)
    return np.stack([(x - left) * scale_x, (y - top) * scale_y, *sides, angle], axis=1)
