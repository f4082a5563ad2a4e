"""Heads that matter to decode_rtmdet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import levels


def cases() -> Iterator[Case]:
    yield case("320 px, 80 classes", 1, 80, (320, 320))
    for unit in ("strides", "log-strides"):
        yield case(unit, 2, 4, (64, 64), distances=unit, offset=0.5)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        one: dict[str, Any] = {"strides": (8,), "dtype": dtype, "shift": -0.5}
        yield case(f"rows of 35 cells, {name}", 2, 3, (56, 280), **one)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("bins", 1, 4, (64, 64), bins=17, distances="strides", scores="probability")
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = levels(2, 4, (64, 64), bins=1)
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
    bins: int = 1,
    strides: tuple[int, ...] = (8, 16, 32),
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """A case for a model of that height and width in pixels."""
    inputs = levels(images, classes, model, bins=bins, strides=strides, dtype=dtype)
    return Case(name, inputs, params, {"model": model})


def not_finite() -> dict[str, list[np.ndarray]]:
    """NaN and infinity in logits and distances, of anchors above the threshold and below it."""
    inputs = levels(2, 4, (64, 64), bins=1)
    for boxes, classes in zip(inputs["boxes"][:2], inputs["classes"][:2], strict=True):
        classes[0, :, 0] = 0.5  # the first row is above
        classes[0, :, 1] = -5.0
        classes[0, 0, 0, 0] = classes[0, 3, 0, 1] = boxes[0, 2, 0, 2] = np.nan
        boxes[0, 3, 0, 3] = np.inf
        classes[0, 2, 1, 0] = boxes[0, 2, 1, 1] = np.nan
        classes[0, 1, 1, 2] = np.inf
        classes[0, :, 1, 3] = -np.inf
    return inputs
