"""Candidates that matter to select_soft_nms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import candidates


def cases() -> Iterator[Case]:
    chain = [[0, 0, 100, 100], [40, 0, 140, 100], [80, 0, 180, 100]], [0.9, 0.8, 0.7]
    for method in ("gaussian", "linear"):
        yield case(f"chain, {method}", chain, method=method)
        for aware in (True, False):
            most = 700 if aware == (method == "gaussian") else 90  # more than a block has threads
            crowds = [crowd(count, count) for count in (300, 40, most)]
            kind = f"{method}, {'a class' if aware else 'any class'}"
            yield case(f"crowds, {kind}", *crowds, method=method, class_aware=aware)
    half = [[0, 0, 10, 10], [0, 0, 10, 5]], [0.9, 0.8]
    yield case("IoU is the threshold", half, method="linear", iou_threshold=0.5)
    equals = [[0, 0, 9, 9]] * 50, np.linspace(1, 0.5, 50)
    yield case("nothing left of the equals", equals, sigma=0.1)
    yield case("any overlap is all", crowd(60, 4), sigma=1e-12)
    for threshold in (0.0, 1.0):
        name = f"linear above {threshold}"
        yield case(name, crowd(60, 5), method="linear", iou_threshold=threshold)
    yield case("the best alone", crowd(60, 6), max_detections=1)
    yield case("max_detections", crowd(300, 3), max_detections=5)
    yield case("no limit", crowd(200, 3), max_detections=2**63 - 1, min_score=0.0)
    yield case("no candidate", ([], []), chain, ([], []))
    yield case("none above min_score", chain, crowd(90, 1), min_score=0.9)
    yield case("no score is above 1", chain, min_score=1.0)
    empty = [[5, 5, 5, 5], [5, 5, 5, 5], [0, 0, 10, 10], [20, 0, 10, 10]], [0.9, 0.8, 0.7, 0.6]
    yield case("no area", empty)
    yield case("equal scores", ([[9 * i, 0, 9 * i + 8, 8] for i in range(100)], [0.5] * 100))
    several = case("several classes an anchor", ([[0, 0, 9, 9]] * 30, [0.5] * 30))
    several.inputs["candidates_anchors"][0, :30] = 100 + np.arange(30) // 3
    several.inputs["candidates_classes"][0, :30] = np.arange(30) % 3
    yield several


def case(name: str, *images: tuple[Any, Sequence[float]], **params: Any) -> Case:
    """Candidates of three classes."""
    return Case(name, candidates(*images, seed=len(name)), params)


def crowd(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around a few places; the scores all differ."""
    random = np.random.default_rng(seed)
    places = random.uniform(0, 600, (1 + count // 20, 2))
    centre = places[random.integers(0, len(places), count)] + random.normal(0, 6, (count, 2))
    size = random.uniform(20, 60, (count, 2))
    boxes = np.concatenate([centre - size, centre + size], axis=1)
    return boxes, random.permutation(count) / count * 0.9 + 0.05
