"""Heads that matter to decode_yolov8_raw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import levels


def cases() -> Iterator[Case]:
    yield case("320 px, 80 classes", 1, 80, (320, 320))
    yield case("plain distances", 2, 80, (128, 96), R=1)
    for dtype in (np.float32, np.float16):
        name = np.dtype(dtype).name
        yield case(f"rows of 35 cells, {name}", 2, 3, (56, 280), strides=(8,), dtype=dtype)
        yield case(f"one class, {name}", 7, 1, (64, 32), dtype=dtype)
    yield case("four levels of 8 bins", 1, 33, (128, 64), strides=(8, 16, 32, 64), R=8)
    yield case("no candidate", 2, 4, (64, 64), score_threshold=1.0)
    yield case("all pass", 2, 4, (64, 64), score_threshold=0.0)
    equal = [level * 0 for level in joined(2, 4, (64, 64))]
    yield Case("equal classes", {"head": equal}, shapes={"model": (64, 64)})
    yield Case("at the threshold", {"head": equal}, {"score_threshold": 0.5}, {"model": (64, 64)})
    yield Case("not finite", {"head": not_finite()}, shapes={"model": (64, 64)})


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
    bins = params.get("R", 16)
    head = joined(images, classes, model, bins=bins, strides=strides, dtype=dtype)
    return Case(name, {"head": head}, params, {"model": model})


def joined(
    images: int, classes: int, model: tuple[int, int], *, bins: int = 16, **more: Any
) -> list[np.ndarray]:
    """Each level `[images, 4 * bins + classes, H, W]`; a tenth of the anchors score above 0.25."""
    head = levels(images, classes, model, bins=bins, **more)
    return [np.concatenate(level, axis=1) for level in zip(*head.values(), strict=True)]


def not_finite() -> list[np.ndarray]:
    """NaN and infinity in logits and bins, of anchors above the threshold and below it."""
    head = joined(2, 4, (64, 64))
    for level in head[:2]:
        level[0, 64:, 0] = 0.5  # the first row is above
        level[0, 64:, 1] = -5.0
        level[0, 64, 0, 0] = level[0, 67, 0, 1] = level[0, 7, 0, 2] = np.nan
        level[0, 63, 0, 3] = np.inf
        level[0, 66, 1, 0] = level[0, 7, 1, 1] = np.nan
        level[0, 65, 1, 2] = np.inf
        level[0, 64:, 1, 3] = -np.inf
        level[1, 1:64:2] = -np.inf
    return head
