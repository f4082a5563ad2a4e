"""Heads that matter to decode_yunet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("faces in 320 px", 1, 1, (320, 320))
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"35 classes, one level, {name}", 2, 35, (56, 72), strides=[8], dtype=dtype)
        yield case(f"a batch, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("no candidate", 2, 1, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 1, (64, 64), score_threshold=0.0)
    equal = levels(2, 3, (64, 64))
    for name in ("classes", "objectness"):
        equal[name] = [np.full_like(level, 0.5) for level in equal[name]]
    yield Case("equal classes", equal, {"score_threshold": 0.4}, {"model": (64, 64)})
    yield Case("at the threshold", equal, {"score_threshold": 0.5}, {"model": (64, 64)})
    not_finite = {name: [level.copy() for level in group] for name, group in equal.items()}
    for classes, objectness, boxes in zip(*not_finite.values(), strict=True):
        objectness[0, 3:] = 0.9
        classes[0, 3, 2] = -0.25  # not the best
        classes[1, 0, :] = -0.25  # no root
        classes[0, 0, 2] = objectness[0, 1] = boxes[0, 2, 0] = boxes[0, 3, 3] = np.nan
        classes[1, 1, 1] = boxes[1, 2, 2] = boxes[1, 3, 1] = np.inf
    yield Case("not finite", not_finite, {"score_threshold": 0.4}, {"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """A case for a model of that height and width in pixels."""
    inputs = levels(images, classes, model, params.get("strides", [8, 16, 32]))
    cast = {name: [level.astype(dtype) for level in group] for name, group in inputs.items()}
    return Case(name, cast, params, {"model": model})


def levels(
    images: int, classes: int, model: tuple[int, int], strides: tuple[int, ...] = (8, 16, 32)
) -> dict[str, list[np.ndarray]]:
    """Scores and boxes of each level; a tenth of the anchors score above 0.6."""
    random = np.random.default_rng(classes)
    groups: dict[str, list[np.ndarray]] = {"classes": [], "objectness": [], "boxes": []}
    for stride in strides:
        shape = images, (model[0] // stride) * (model[1] // stride)
        found = random.random((*shape, 1)) < 0.1
        scores = random.uniform(0, 0.5, (*shape, classes))
        groups["classes"].append(np.where(found, scores + 0.5, scores).astype(np.float32))
        objectness = random.uniform(0, 0.5, (*shape, 1))
        groups["objectness"].append(np.where(found, 1 - objectness, objectness).astype(np.float32))
        groups["boxes"].append(random.normal(0, 1, (*shape, 4)).astype(np.float32))
    return groups
