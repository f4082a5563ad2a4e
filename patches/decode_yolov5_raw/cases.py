"""Heads that matter to decode_yolov5_raw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    two = {"anchors": [12, 18, 37, 49, 52, 132, 115, 73, 119, 199, 242, 238]}
    yield case("256 px, 80 classes", 1, 80, (256, 256))
    yield case("yolov3, two levels", 2, 80, (96, 128), strides=(16, 32), form="yolov3", **two)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        one = {"strides": (8,), "anchors": [10.5, 13.25, 16, 30], "dtype": dtype}
        yield case(f"rows of 35 cells, {name}", 2, 3, (56, 280), **one)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = [level * 0 for level in levels(2, 4, (64, 64))]
    yield Case("equal classes", {"head": equal}, {"score_threshold": 0.2}, {"model": (64, 64)})
    yield Case("at the threshold", {"head": equal}, {}, {"model": (64, 64)})
    for level in (objectness := [level.copy() for level in equal]):
        level[:, 5:9] = level[:, 14:] = 200
    yield Case(
        "objectness at the threshold", {"head": objectness}, {"score_threshold": 0.5},
        {"model": (64, 64)},
    )  # fmt: skip
    for form in ("yolov5", "yolov3"):
        name, params = f"not finite, {form}", {"form": form}
        yield Case(name, {"head": not_finite()}, params, {"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    strides: tuple[int, ...] = (8, 16, 32),
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """A case for a model of that height and width in pixels."""
    anchors = len(params.get("anchors", range(18))) // (2 * len(strides))
    head = levels(images, classes, model, anchors=anchors, strides=strides, dtype=dtype)
    return Case(name, {"head": head}, params, {"model": model})


def levels(
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    anchors: int = 3,
    strides: tuple[int, ...] = (8, 16, 32),
    dtype: type[np.floating] = np.float32,
) -> list[np.ndarray]:
    """Logits of each level; a tenth of the anchors are objects, in a tenth of the tiles most."""
    random = np.random.default_rng(classes)
    head = []
    for stride in strides:
        height, width = model[0] // stride, model[1] // stride
        level = random.normal(0, 2, (images, anchors, 5 + classes, height, width))
        level[:, :, 4] -= 7
        level[:, :, 4][random.random(level[:, :, 4].shape) < 0.1] += 9
        level[:, :, 5:] += 1
        head.append(level.reshape(images, -1, height, width).astype(dtype))
    return head


def not_finite() -> list[np.ndarray]:
    """NaN and infinity in every kind of logit, of anchors above the threshold and below it."""
    head = levels(2, 4, (64, 64))
    for level in head[:2]:
        level[0, 4:9, 0] = level[0, 13:18, 0] = 3.0  # the first row is above
        level[0, 4:9, 1] = level[0, 13:18, 1] = -5.0
        level[0, 4, 0, 0] = level[0, 8, 0, 1] = level[0, 14, 0, 2] = level[0, 2, 0, 3] = np.nan
        level[0, 11, 0, 0] = level[0, 9, 0, 1] = np.inf
        level[0, 13, 1, 0] = level[0, 15, 1, 1] = level[0, 10, 1, 2] = np.nan
        level[0, 4, 1, 3] = level[0, 5, 1, 3] = np.inf
        level[0, 13:18, 1, 3] = -np.inf
    return head
