"""Heads that matter to decode_ssd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case

DEFAULT: dict[str, Any] = {"strides": [8, 16, 32, 64], "priors_a_cell": [3, 2, 2, 3]}


def cases() -> Iterator[Case]:
    yield case("faces in 320 x 240", 1, 1, (240, 320))
    one: dict[str, Any] = {"strides": [16], "priors_a_cell": [2], "priors": [30, 60, 60.5, 30]}
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"90 classes, one level, {name}", 2, 90, (70, 90), dtype=dtype, **one)
        yield case(f"a batch, {name}", 7, 3, (48, 64), dtype=dtype)
    yield case("priors that are not clipped", 2, 7, (48, 64), clip=False, variances=[0.2, 0.5])
    for dtype in (np.float32, np.float16):
        name = f"decoded, {np.dtype(dtype).name}"
        yield case(name, 2, 3, (48, 64), dtype=dtype, decoded=True)
    yield case("no candidate", 2, 3, (48, 64), score_threshold=1.0)
    yield case("all pass", 2, 3, (48, 64), score_threshold=0.0)
    equal = heads(2, anchors((48, 64), **DEFAULT), 3)
    equal["scores"][...] = 0.25
    yield Case("equal classes", equal, {"score_threshold": 0.2}, {"model": (48, 64)})
    yield Case("at the threshold", equal, {}, {"model": (48, 64)})
    not_finite = {name: array.copy() for name, array in equal.items()}
    scores, boxes = not_finite["scores"], not_finite["boxes"]
    scores[0, :20, 2] = 0.9
    scores[0, 1, 3] = scores[0, 2, 1] = boxes[0, 3, 1] = boxes[0, 4, 2] = np.nan
    scores[0, 5, 0] = np.nan  # the background's score plays no part
    scores[0, 6, 3] = boxes[0, 7, 2] = np.inf
    boxes[0, 8, 3] = -np.inf
    scores[0, 30, 1] = boxes[0, 31] = np.nan
    yield Case("not finite", not_finite, {}, {"model": (48, 64)})
    yield Case("not finite, decoded", not_finite, {"decoded": True}, {"model": (48, 64)})


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
    sizes = {name: params.get(name, DEFAULT[name]) for name in DEFAULT}
    inputs = heads(images, anchors(model, **sizes), classes, dtype)
    return Case(name, inputs, params, {"model": model})


def anchors(model: tuple[int, int], strides: list[int], priors_a_cell: list[int]) -> int:
    """How many prior boxes there are."""
    pairs = zip(strides, priors_a_cell, strict=True)
    return sum(-(-model[0] // s) * -(-model[1] // s) * count for s, count in pairs)


def heads(
    images: int, count: int, classes: int, dtype: type[np.floating] = np.float32
) -> dict[str, np.ndarray]:
    """Scores that add up to 1, a tenth of them of objects; offsets of order one."""
    random = np.random.default_rng(count)
    logits = random.normal(0, 1, (images, count, 1 + classes))
    logits[..., 0] += np.where(random.random((images, count)) < 0.9, 6, -3)
    weights = np.exp(logits)
    scores = weights / weights.sum(axis=2, keepdims=True)
    boxes = random.normal(0, 2, (images, count, 4))
    return {"scores": scores.astype(dtype), "boxes": boxes.astype(dtype)}
