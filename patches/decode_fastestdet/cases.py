"""Heads that matter to decode_fastestdet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    yield case("352 px, 80 classes", 1, 80, (352, 352))
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"rows of 35 cells, {name}", 2, 3, (112, 560), dtype=dtype)
        yield case(f"one class, two levels, {name}", 7, 1, (64, 32), strides=(16, 32), dtype=dtype)
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = level(2, 4, (4, 4))
    equal[:, 0] = equal[:, 5:] = 1.0
    yield Case("equal classes", {"head": [equal]}, {}, {"model": (64, 64)})
    yield Case("at the threshold", {"head": [equal]}, {"score_threshold": 1.0}, {"model": (64, 64)})
    head = equal.copy()
    head[0, 0, 2:] = 0.1
    head[0, 0, 0, 0] = head[0, 5, 0, 1] = head[0, 8, 0, 2] = head[0, 2, 0, 3] = np.nan
    head[0, 3, 1, 0] = head[0, 1, 1, 1] = np.inf
    head[0, 4, 1, 2] = -np.inf
    head[0, 0, 1, 3] = -0.5  # no root
    head[0, 6, 2, 0] = head[0, 2, 2, 1] = np.nan
    yield Case("not finite", {"head": [head]}, {}, {"model": (64, 64)})


def case(
    name: str,
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    strides: tuple[int, ...] = (16,),
    dtype: type[np.floating] = np.float32,
    **params: float,
) -> Case:
    """A case for a model of that height and width in pixels."""
    sizes = [(model[0] // stride, model[1] // stride) for stride in strides]
    head = [level(images, classes, size).astype(dtype) for size in sizes]
    return Case(name, {"head": head}, params, {"model": model})


def level(images: int, classes: int, size: tuple[int, int]) -> np.ndarray:
    """`[images, 5 + classes, *size]`; a fifth of the anchors are objects."""
    random = np.random.default_rng(classes)
    head = random.normal(0, 1, (images, 5 + classes, *size))
    head[:, 0] = np.where(random.random(head[:, 0].shape) < 0.2, 0.9, 0.2)
    weights = np.exp(3 * head[:, 5:])
    head[:, 5:] = weights / weights.sum(axis=1, keepdims=True)
    return head.astype(np.float32)
