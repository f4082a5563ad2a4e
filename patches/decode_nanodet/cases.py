"""Heads that matter to decode_nanodet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("416 px, 80 classes", 1, 80, (416, 416))
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        one: dict[str, Any] = {"strides": [8], "bins": 5, "dtype": dtype}
        yield case(f"35 classes, one level, {name}", 2, 35, (50, 70), **one)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    plain: dict[str, Any] = {"offset": 0.0, "shift": 0.0, "strides": [8, 16, 32, 64], "bins": 1}
    yield case("plain distances from corners, four levels", 2, 3, (100, 64), **plain)
    yield case("logits", 2, 4, (64, 64), scores="logit")
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = levels(2, 4, (64, 64))
    equal["classes"] = [np.full_like(level, 0.25) for level in equal["classes"]]
    yield Case("equal classes", equal, {"score_threshold": 0.2}, {"model": (64, 64)})
    yield Case("at the threshold", equal, {}, {"model": (64, 64)})
    yield Case("not finite", not_finite(), {}, {"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    bins: int = 8,
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """A case for a model of that height and width in pixels."""
    strides = params.get("strides", [8, 16, 32])
    inputs = levels(images, classes, model, bins=bins, strides=strides, dtype=dtype)
    if params.get("scores") == "logit":
        inputs["classes"] = [level * 10 - 5 for level in inputs["classes"]]
    return Case(name, inputs, params, {"model": model})


def levels(
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    bins: int = 8,
    strides: tuple[int, ...] = (8, 16, 32),
    dtype: type[np.floating] = np.float32,
) -> dict[str, list[np.ndarray]]:
    """Scores and bins of each level; a tenth of the anchors score above 0.25."""
    random = np.random.default_rng(classes)
    boxes, scores = [], []
    for stride in strides:
        cells = -(-model[0] // stride) * -(-model[1] // stride)
        sides = random.normal(0, 2, (images, cells, 4 * bins))
        boxes.append((np.abs(sides) if bins == 1 else sides).astype(dtype))
        level = random.uniform(0, 0.25, (images, cells, classes))
        level[random.random(level.shape) < 0.1 / classes] += 0.5
        scores.append(level.astype(dtype))
    return {"boxes": boxes, "classes": scores}


def not_finite() -> dict[str, list[np.ndarray]]:
    """NaN and infinity in scores and bins, of anchors above the threshold and below it."""
    inputs = levels(2, 4, (64, 64))
    for boxes, classes in zip(inputs["boxes"][:2], inputs["classes"][:2], strict=True):
        classes[0, :8] = 0.5  # the first eight are above
        classes[0, 8:] = 0.1
        classes[0, 0, 0] = classes[0, 1, 3] = boxes[0, 2, 7] = np.nan
        boxes[0, 3, 31] = np.inf
        classes[0, 9, 2] = boxes[0, 10, 7] = np.nan
        classes[0, 11, 1] = np.inf
        classes[0, 12] = -np.inf
        boxes[1, :, 1::2] = -np.inf
    return inputs
