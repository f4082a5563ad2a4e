"""Candidates that matter to select_nms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import candidates

Boxes = Sequence[Sequence[float]]


def cases() -> Iterator[Case]:
    chain = [[0, 0, 100, 100], [40, 0, 140, 100], [80, 0, 180, 100]]
    yield case("chain", (chain, [0.9, 0.8, 0.7]), iou_threshold=0.4)
    pair = [[7, 0, 12, 63], [7, 0, 12, 65]]
    yield case("one kills", (pair, [0.0, 1.0]), iou_threshold=0.3)
    half = [[0, 0, 10, 10], [0, 0, 10, 5]]
    yield case("IoU is the threshold", (half, [0.9, 0.8]), iou_threshold=0.5)
    five = np.float32([[0, 0, 3, 3], [0, 0, 4, 4], [0, 0, 5, 5], [5, 5, 9, 9], [5, 5, 10, 10]]) / 10
    scores = [0.9, 0.75, 0.6, 0.95, 0.8]
    for aware in (True, False):
        pair_of_images = (five, scores), (five, scores[::-1])
        yield case("two images", *pair_of_images, classes=2, class_aware=aware)
    empty = [[5, 5, 5, 5], [5, 5, 5, 5], [0, 0, 10, 10], [20, 0, 10, 10]]
    yield case("no area", (empty, [0.9, 0.8, 0.7, 0.6]), iou_threshold=0.0)
    negative = [[-30, -20, 10, 10], [-28, -20, 10, 10], [-90, -90, -50, -50]]
    yield case("negative", (negative, [-3.0, -5.0, -4.0]))
    yield case("no candidate", ([], []), (chain, [0.9, 0.8, 0.7]), ([], []))
    yield case("equal scores", (grid(100), np.full(100, 0.5)))
    yield case("equal boxes", (np.tile(grid(1), (300, 1)), np.linspace(0, 1, 300)))
    line = grid(700)[:, :4] * [0.3, 0, 0.3, 1]
    yield case("long chains", (line, np.linspace(1, 0, 700)), iou_threshold=0.3)
    for images in (1, 2, 7):
        yield case("crowd", *(crowd(n * 350, n) for n in range(images, 0, -1)), classes=3)
    for aware in (True, False):
        crowds = crowd(3000, 0), crowd(1, 1)
        yield case("crowds", *crowds, classes=3, class_aware=aware, max_detections=3000)
    yield case("all kept", (grid(2000), np.linspace(0, 1, 2000)), max_detections=2**63 - 1)
    yield case("max_detections", crowd(700, 3), max_detections=5)
    yield case("the best alone", (chain, [0.9, 0.8, 0.7]), max_detections=1)
    yield case("no IoU is above 1", crowd(50, 4), iou_threshold=1.0)
    yield case("pre_nms_topk", crowd(700, 3), pre_nms_topk=300)
    yield case("huge pre_nms_topk", crowd(300, 3), pre_nms_topk=2**63 - 1)
    by_class = {"class_score_thresholds": [0.3, 0.9], "class_iou_thresholds": [0.1, 1.0]}
    for count, aware in ((200, True), (1500, True), (700, False)):
        crowds = crowd(count, 5), crowd(count // 2, 6)
        yield case(f"by class, {count}", *crowds, classes=3, class_aware=aware, **by_class)
    yield case("none above its class", (chain, [0.9, 0.8, 0.7]), class_score_thresholds=[0.9])
    yield case("diou", crowd(700, 7), metric="diou", iou_threshold=0.3)
    centres = [[0, 0, 10, 10], [0, 2, 10, 8], [4, 0, 10, 10]]  # IoU 0.6, the last off the centre
    yield case("centres", (centres, [0.9, 0.8, 0.7]), metric="diou", iou_threshold=0.59)
    yield several_classes_an_anchor(9)
    yield several_classes_an_anchor(400)


def case(
    name: str, *images: tuple[Boxes, Sequence[float]], classes: int = 1, **params: Any
) -> Case:
    """Candidates of so many images."""
    inputs = candidates(*images, classes=classes, seed=len(name))
    aware = "" if params.get("class_aware", True) else ", any class"
    return Case(f"{name}, {len(images)} images{aware}", inputs, params)


def grid(count: int) -> np.ndarray:
    """`[count, 4]` boxes of 8 x 8 px that do not touch, 100 a row."""
    index = np.arange(count)
    corner = np.stack([index % 100, index // 100], axis=1) * 10.0
    return np.concatenate([corner, corner + 8], axis=1)


def crowd(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Boxes around a few places, and scores with many equals."""
    random = np.random.default_rng(seed)
    places = random.uniform(0, 600, (1 + count // 20, 2))
    centre = places[random.integers(0, len(places), count)] + random.normal(0, 6, (count, 2))
    size = random.uniform(20, 60, (count, 2))
    boxes = np.concatenate([centre - size, centre + size], axis=1)
    return boxes, random.integers(1, 50, count) / 50


def several_classes_an_anchor(anchors: int) -> Case:
    """Anchors of one score under three classes each, as from a head with several labels a box."""
    count = 3 * anchors
    inputs = candidates((np.repeat(grid(anchors), 3, axis=0), np.full(count, 0.5)))
    index = inputs["candidates_anchors"][0, :count] - 100
    inputs["candidates_anchors"][0, :count], inputs["candidates_classes"][0, :count] = (
        index // 3, index % 3,
    )  # fmt: skip
    params = {"max_detections": count}
    return Case(f"several classes an anchor, {anchors} anchors", inputs, params)
