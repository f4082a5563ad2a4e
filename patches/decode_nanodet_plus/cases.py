"""Heads that matter to decode_nanodet_plus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("416 px, 80 classes", 1, 80, (416, 416))
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        one: dict[str, Any] = {"strides": [8], "R": 5, "dtype": dtype}
        yield case(f"35 classes, one level, {name}", 2, 35, (50, 70), **one)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("plain distances from middles", 2, 3, (64, 64), R=1, offset=0.5, shift=-0.5)
    yield case("logits", 2, 4, (64, 64), scores="logit")
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = rows(2, 4, (64, 64))
    equal[..., :4] = 0.25
    yield Case("equal classes", {"head": equal}, {"score_threshold": 0.2}, {"model": (64, 64)})
    yield Case("at the threshold", {"head": equal}, {}, {"model": (64, 64)})
    head = equal.copy()
    head[0, :8, :4] = 0.5  # the first eight are above
    head[0, 0, 0] = head[0, 1, 3] = head[0, 2, 11] = np.nan
    head[0, 3, 35] = np.inf
    head[0, 9, 2] = head[0, 10, 11] = np.nan
    head[0, 11, 1] = np.inf
    head[0, 12, :4] = -np.inf
    head[1, :, 5::2] = -np.inf
    yield Case("not finite", {"head": head}, {}, {"model": (64, 64)})


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
    strides, bins = params.get("strides", [8, 16, 32, 64]), params.get("R", 8)
    head = rows(images, classes, model, bins=bins, strides=strides)
    if params.get("scores") == "logit":
        head[..., :classes] = head[..., :classes] * 10 - 5
    return Case(name, {"head": head.astype(dtype)}, params, {"model": model})


def rows(
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    bins: int = 8,
    strides: tuple[int, ...] = (8, 16, 32, 64),
) -> np.ndarray:
    """`[images, A, classes + 4 * bins]`; a tenth of the anchors score above 0.25."""
    random = np.random.default_rng(classes)
    anchors = sum(-(-model[0] // stride) * -(-model[1] // stride) for stride in strides)
    sides = random.normal(0, 2, (images, anchors, 4 * bins))
    scores = random.uniform(0, 0.25, (images, anchors, classes))
    scores[random.random(scores.shape) < 0.1 / classes] += 0.5
    parts = [scores, np.abs(sides) if bins == 1 else sides]
    return np.concatenate(parts, axis=2).astype(np.float32)
