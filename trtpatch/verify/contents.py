"""Contents of tensors, made up: as an engine, or an earlier patch of a chain, could have left them.

All of it is decided by a generator of random numbers, so that a seed stands for a whole case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trtpatch.spec.ports import PORTS, FrameLayout

Array = np.ndarray[Any, Any]
Random = np.random.Generator

SPECIAL = (0.0, -0.0, 1.0, 1e-40, 6e4, -6e4, np.inf, -np.inf, np.nan)
"""Numbers that are put among ordinary ones: both zeros, a subnormal, large ones of float16, ..."""

HARD = (np.inf, np.nan, 6e4)
"""Of these, the ones that most often show a fault: what is made an integer, or an index."""

_SIDE = 96
"""Largest side of a made-up picture, in pixels."""


def _as_given(values: Array, random: Random) -> Array:
    return values


def _noisy(values: Array, random: Random) -> Array:
    return values * random.normal(1, 0.25, values.shape)


def _coarse(values: Array, random: Random) -> Array:
    return np.asarray(np.round(values * 4) / 4)  # many are equal, also to thresholds


def _uniform(values: Array, random: Random) -> Array:
    return np.asarray(random.uniform(-4, 4, values.shape))


def _constant(values: Array, random: Random) -> Array:
    return np.full_like(values, values.flat[0] if values.size else 0)


STYLES: Mapping[str, Callable[[Array, Random], Array]] = {
    "as given": _as_given,
    "noisy": _noisy,
    "coarse": _coarse,
    "uniform": _uniform,
    "constant": _constant,
}
"""How the numbers of an engine's tensor come from those of a case."""


def engine_tensor(
    random: Random,
    given: Array,
    shape: Sequence[int],
    dtype: str,
    *,
    style: str,
    special: Sequence[float],
) -> Array:
    """Contents of an engine's tensor.

    Args:
        random: decides.
        given: the tensor of a case, whose numbers are repeated or cut to the shape.
        shape, dtype: of the result.
        style: of `STYLES`; whole numbers stay as they are given.
        special: numbers of which each is put in some places.
    """
    axes = [np.arange(size) % old for size, old in zip(shape, given.shape, strict=True)]
    values = given[np.ix_(*axes)].copy()
    if not np.issubdtype(given.dtype, np.floating):
        whole: Array = values.astype(dtype)
        return whole
    values = np.array(STYLES[style](values.astype(np.float64), random))
    for number in special:
        if values.size:
            values.flat[random.integers(0, values.size, 1 + values.size // 200)] = number
    with np.errstate(over="ignore"):
        filled: Array = values.astype(dtype)
    return filled


def frames(random: Random, images: int, layout: FrameLayout) -> list[Array]:
    """Pictures of noise, uint8; their rows may lie apart, and a place may be unused."""
    made = []
    for _ in range(images):
        height, width = random.integers(1, _SIDE, 2)
        if layout == "nv12":
            shape: tuple[int, ...] = (height * 3, width * 2)  # twice as high, and even
        elif layout == "gray":
            shape = (height, width)
        else:
            shape = (3, height, width) if "planar" in layout else (height, width, 3)
        pixels = random.integers(0, 256, shape, dtype=np.uint8)
        if layout in ("rgb", "bgr") and random.random() < 0.5:
            pixels = np.pad(pixels, ((0, 0), (0, 5), (0, 0)))[:, :width]
        made.append(pixels)
    if images > 1 and random.random() < 0.3:
        made[-1] = np.zeros((0, 0, 3), np.uint8)
    return made


def port(random: Random, name: str, *, anchors: int, sizes: Mapping[str, Any]) -> dict[str, Array]:
    """Contents of a port's tensors, by field.

    Args:
        random: decides.
        name: of the port; `frame` is another matter.
        anchors: of the head; those in the port lie below.
        sizes: value of each symbol of the port's shapes.
    """
    made = {}
    for field, tensor in PORTS[name].fields():
        shape = tuple(sizes[axis] if isinstance(axis, str) else axis for axis in tensor.shape)
        made[field] = np.zeros(shape, tensor.dtype)
        if tensor.dtype == "float32":
            made[field][...] = random.normal(0, 1, shape)
    if name in _PORTS:
        _PORTS[name](random, made, anchors)
    return made


def keep_in_frame(made: dict[str, Array]) -> None:
    """Let detections lie within the frame that the geometry tells of, where a patch takes both."""
    if "geometry" in made and "detections_boxes" in made:
        size = np.tile(made["geometry"][:, None, 4:6], 2)
        made["detections_boxes"][...] = np.clip(made["detections_boxes"], 0, size)


def _geometry(random: Random, made: dict[str, Array], anchors: int) -> None:
    table = made["geometry"]
    table[:, :2] = random.uniform(0.25, 4, (len(table), 1))
    table[:, 2:4] = random.integers(0, 40, (len(table), 2))
    table[:, 4:] = random.integers(1, 700, (len(table), 2))


def _candidates(random: Random, made: dict[str, Array], anchors: int) -> None:
    scores = made["candidates_scores"]
    images, room = scores.shape
    made["candidates_boxes"][...] = _boxes(random, images, room)
    scores[...] = random.random(scores.shape)
    if random.random() < 0.5:
        scores[...] = np.round(scores * 8) / 8  # many are equal
    made["candidates_classes"][...] = random.integers(0, random.integers(1, 5), scores.shape)
    for image in range(images):
        made["candidates_anchors"][image] = random.permutation(room)
    made["candidates_count"][...] = random.integers(0, room + 1, images)
    made["candidates_nans"][...] = random.integers(0, 3, images)


def _detections(random: Random, made: dict[str, Array], anchors: int) -> None:
    scores = made["detections_scores"]
    images, room = scores.shape
    made["detections_boxes"][...] = _boxes(random, images, room)
    scores[...] = -np.sort(-random.random(scores.shape))
    made["detections_classes"][...] = random.integers(0, 5, scores.shape)
    made["detections_anchors"][...] = -1
    for image in range(images):
        count = random.integers(0, min(room, anchors) + 1)
        made["detections_count"][image] = made["detections_counters"][image, 1] = count
        chosen = random.choice(anchors, count, replace=False)
        made["detections_anchors"][image, :count] = chosen
        for field in ("boxes", "scores", "classes"):
            made[f"detections_{field}"][image, count:] = 0


def _rectangles(random: Random, made: dict[str, Array], anchors: int) -> None:
    table = made["rectangles"]
    upright = _boxes(random, *table.shape[:2])
    table[..., :2] = upright[..., :2]
    table[..., 2:4] = upright[..., 2:] - upright[..., :2]
    table[..., 4] = random.uniform(-np.pi, np.pi, table.shape[:2])


_PORTS = {
    "geometry": _geometry,
    "candidates": _candidates,
    "detections": _detections,
    "rectangles": _rectangles,
}


def _boxes(random: Random, images: int, room: int) -> Array:
    """`[images, room, 4]` x1 y1 x2 y2; some have no area, some leave the picture."""
    corner = random.uniform(-20, 300, (images, room, 2))
    size = np.maximum(random.uniform(-10, 120, (images, room, 2)), 0)
    boxes = np.concatenate([corner, corner + size], axis=2)
    steps = random.choice([1, 8])
    coarse: Array = (np.round(boxes * steps) / steps).astype(np.float32)
    return coarse
