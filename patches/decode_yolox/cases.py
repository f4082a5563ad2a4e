"""Heads that matter to decode_yolox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("416 px, 80 classes", 1, 80, (416, 416))
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"wide, rows of 16 bytes, {name}", 2, 11, (32, 96), dtype=dtype)
        yield case(f"high, one class, {name}", 7, 1, (64, 32), dtype=dtype)
        yield case(f"not a multiple of the strides, {name}", 2, 80, (50, 70), dtype=dtype)
    yield case("four levels", 1, 3, (128, 64), {"strides": [8, 16, 32, 64]})
    yield case("one level, stride 5", 1, 3, (20, 30), {"strides": [5]})
    yield case("no candidate", 2, 4, (64, 64), {"score_threshold": 1.0})
    yield case("all pass", 2, 4, (160, 160), {"score_threshold": 0.0})
    not_finite = head(2, 84, 10)
    not_finite[0, :20, 4:] = 0.75
    not_finite[0, 1, 8] = not_finite[0, 2, 4] = not_finite[0, 3, 2] = not_finite[0, 4, 0] = np.nan
    not_finite[0, 5, 7] = not_finite[0, 6, 3] = np.inf  # a size of e^inf is infinite, not NaN
    not_finite[0, 7, 2] = -np.inf
    not_finite[0, 30, 2] = np.nan
    yield Case("not finite", {"head": not_finite}, shapes={"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    params: dict[str, object] | None = None,
    *,
    dtype: type[np.floating] = np.float32,
) -> Case:
    """A case for a model of that height and width in pixels."""
    params = params or {}
    strides = params.get("strides", [8, 16, 32])
    assert isinstance(strides, Sequence)
    anchors = sum((model[0] // stride) * (model[1] // stride) for stride in strides)
    inputs = {"head": head(images, anchors, classes, dtype=dtype)}
    return Case(name, inputs, params, {"model": model})


def head(
    images: int, anchors: int, classes: int, *, dtype: type[np.floating] = np.float32
) -> np.ndarray:
    """`[images, anchors, 5 + classes]`: a tenth of the scores above 0.25."""
    random = np.random.default_rng(anchors)
    boxes = random.normal(0, 1, (images, anchors, 4))
    objectness = random.uniform(0.7, 1, (images, anchors, 1))
    scores = random.uniform(0, 0.25, (images, anchors, classes))
    scores[random.random(scores.shape) < 0.1 / classes] += 0.5
    return np.concatenate([boxes, objectness, scores], axis=2).astype(dtype)
