"""Heads that matter to decode_yolov8_split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import levels


def cases() -> Iterator[Case]:
    yield case("640 px, 80 classes", 1, 80, (640, 640))
    yield case("plain distances", 2, 80, (128, 96), bins=1)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"rows of 35 cells, {name}", 2, 3, (56, 280), strides=(8,), dtype=dtype)
        yield case(f"13 x 13 cells, {name}", 3, 80, (416, 416), strides=(32,), dtype=dtype)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("one cell a level", 1, 5, (64, 64), strides=(64,))
    yield case("four levels of 8 bins", 1, 33, (128, 64), bins=8, strides=(8, 16, 32, 64))
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (160, 160), score_threshold=0.0)
    equal = levels(1, 20, (64, 64), bins=16)
    equal["classes"] = [np.zeros_like(level) for level in equal["classes"]]
    yield Case("equal classes", equal, shapes={"model": (64, 64)})
    yield Case("at the threshold", equal, {"score_threshold": 0.5}, {"model": (64, 64)})
    yield Case("not finite", not_finite(), shapes={"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    bins: int = 16,
    strides: tuple[int, ...] = (8, 16, 32),
    dtype: type[np.floating] = np.float32,
    **params: float,
) -> Case:
    """A case for a model of that height and width in pixels."""
    inputs = levels(images, classes, model, bins=bins, strides=strides, dtype=dtype)
    return Case(name, inputs, params, {"model": model})


def not_finite() -> dict[str, list[np.ndarray]]:
    """NaN and infinity in logits and bins, of anchors above the threshold and below it."""
    inputs = levels(2, 10, (64, 64), bins=16, strides=(8, 16))
    for boxes, classes in zip(inputs["boxes"], inputs["classes"], strict=True):
        classes[0, :, 0] = 0.5  # the first row is above
        classes[0, :, 1] = -5.0
        classes[0, 0, 0, 0] = classes[0, 9, 0, 1] = boxes[0, 7, 0, 2] = np.nan
        boxes[0, 63, 0, 3] = np.inf
        classes[0, 4, 1, 0] = boxes[0, 7, 1, 1] = np.nan
        classes[0, 5, 1, 2] = np.inf
        classes[0, :, 1, 3] = -np.inf
        boxes[1, 1::2] = -np.inf
    return inputs
