"""Candidates that matter to select_nms_rotated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import candidates


def cases() -> Iterator[Case]:
    plus = np.float32([[50, 50, 80, 8, 0], [50, 50, 80, 8, np.pi / 2], [51, 50, 80, 8, 0.05]])
    yield case("plus sign", (plus, [0.9, 0.8, 0.7]))
    chain = np.float32([[50 + 20 * i, 50 + 20 * i, 100, 40, np.pi / 4] for i in range(3)])
    yield case("chain", (chain, [0.9, 0.8, 0.7]), iou_threshold=0.3)
    turned = np.float32([[90, 90, 60, 20, 0.5 + i * np.pi] for i in range(-3, 4)])
    yield case("half turns", (turned, np.linspace(0.9, 0.3, 7)), iou_threshold=0.9)
    thin = np.float32([[9, 9, 0, 0, 0], [9, 9, 50, 0, 1], [9, 9, 50, 0, 1], [9, 9, 0, 7, 2]])
    yield case("no area", (thin, [0.9, 0.8, 0.7, 0.6]), iou_threshold=0.0)
    yield case("no candidate", (plus[:0], []), (plus, [0.9, 0.8, 0.7]), (plus[:0], []))
    for threshold in (0.05, 0.5, 0.95):
        crowds = [crowd(count, count) for count in (300, 40, 1)]
        yield case(f"crowds at {threshold}", *crowds, iou_threshold=threshold)
    yield case("any class", crowd(700, 1), class_aware=False, max_detections=700)
    by_class = {"class_score_thresholds": [0.3, 0.5], "class_iou_thresholds": [0.1, 1.0]}
    yield case("by class", crowd(700, 2), pre_nms_topk=400, **by_class)
    yield case("no IoU is above 1", crowd(40, 4), iou_threshold=1.0)
    yield case("the best alone", crowd(40, 5), max_detections=1)
    yield case("max_detections", crowd(300, 3), max_detections=5)


def case(name: str, *images: tuple[np.ndarray, Any], **params: Any) -> Case:
    """Candidates of three classes, and rectangles of their anchors."""
    upright = [(around(rectangles), scores) for rectangles, scores in images]
    inputs = candidates(*upright, spare=102, seed=len(name))  # anchors count from 100
    room = inputs["candidates_scores"].shape[1]
    inputs["rectangles"] = np.full((len(images), room, 5), np.nan, np.float32)
    for n, (rectangles, scores) in enumerate(images):
        inputs["rectangles"][n, 100 : 100 + len(scores)] = rectangles
    return Case(name, inputs, params)


def around(rectangles: np.ndarray) -> np.ndarray:
    """`[K, 4]` upright boxes around `[K, 5]`."""
    centre, size, angle = rectangles[:, :2], rectangles[:, 2:4], rectangles[:, 4:]
    half = (size * np.abs(np.cos(angle)) + size[:, ::-1] * np.abs(np.sin(angle))) / 2
    return np.concatenate([centre - half, centre + half], axis=1)


def crowd(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rectangles of all angles around a few places, and scores with many equals."""
    random = np.random.default_rng(seed)
    places = random.uniform(0, 600, (1 + count // 20, 2))
    angles = random.uniform(-4, 4, len(places))
    which = random.integers(0, len(places), count)
    centre = places[which] + random.normal(0, 6, (count, 2))
    size = random.uniform(5, 60, (count, 2))
    angle = angles[which] + random.normal(0, 0.3, count)
    rectangles = np.concatenate([centre, size, angle[:, None]], axis=1).astype(np.float32)
    return rectangles, random.integers(1, 50, count) / 50
