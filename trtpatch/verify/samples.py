"""Heads and ports filled with values of no meaning, for the cases of patches that take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def levels(
    images: int,
    classes: int,
    model: tuple[int, int],
    *,
    bins: int,
    strides: Sequence[int] = (8, 16, 32),
    dtype: type[np.floating[Any]] = np.float32,
) -> dict[str, list[Array]]:
    """The raw levels of an anchor-free head; a tenth of the anchors score above 0.25.

    Args:
        images, classes: how many.
        model: height and width of the model's picture, in pixels.
        bins: logits of a side's distance; 1 for the distance itself.
        strides: of each level, in pixels.
        dtype: of all.

    Returns:
        `boxes`, each `[images, 4 * bins, H, W]`, and `classes`, logits `[images, classes, H, W]`.
    """
    random = np.random.default_rng(classes)
    head: dict[str, list[Array]] = {"boxes": [], "classes": []}
    for stride in strides:
        height, width = model[0] // stride, model[1] // stride
        sides = random.normal(0, 2, (images, 4 * bins, height, width))
        head["boxes"].append((np.abs(sides) if bins == 1 else sides).astype(dtype))
        logits = random.normal(-6, 1, (images, classes, height, width))
        logits[random.random(logits.shape) < 0.1 / classes] += 6
        head["classes"].append(logits.astype(dtype))
    return head


def candidates(
    *images: tuple[Any, Sequence[float]], classes: int = 3, spare: int = 2, seed: int = 0
) -> dict[str, Array]:
    """The candidates port in a shuffled order, and a geometry.

    Two neighbours are of one class, and anchors count from 100. What is past an image's count would
    be seen if it were read.

    Args:
        images: boxes `[K, 4]`, x1 y1 x2 y2 in model pixels, and scores `[K]` of each.
        classes: how many there are.
        spare: places that stay free in each image.
        seed: of the order.
    """
    random = np.random.default_rng(seed)
    room = max(1, *(len(scores) for _, scores in images)) + spare
    port = {
        "boxes": np.full((len(images), room, 4), 77, np.float32),
        "scores": np.full((len(images), room), 77, np.float32),
        "classes": np.zeros((len(images), room), np.int32),
        "anchors": np.full((len(images), room), 7777, np.int32),
        "count": np.array([len(scores) for _, scores in images], np.int32),
        "nans": np.arange(len(images), dtype=np.int32),
    }
    for n, (boxes, scores) in enumerate(images):
        index = np.arange(len(scores))
        slots = random.permutation(len(scores))
        port["boxes"][n, slots] = np.reshape(boxes, (-1, 4))
        port["scores"][n, slots] = scores
        port["classes"][n, slots] = index // 2 % classes
        port["anchors"][n, slots] = 100 + index
    geometry = np.tile(np.array([1.7, 1.3, 3, 5, 1000, 700], np.float32), (len(images), 1))
    return {"geometry": geometry, **{f"candidates_{name}": one for name, one in port.items()}}


def detections(
    counts: Sequence[int], *, anchors: int, frame: tuple[int, int] = (480, 640), room: int = 20
) -> dict[str, Array]:
    """The detections port with boxes anywhere in a frame.

    What is past an image's count is as patches leave it, and would be seen if it were read.

    Args:
        counts: detections of each image.
        anchors: how many there are to come from.
        frame: height and width in pixels.
        room: places an image.
    """
    random = np.random.default_rng([*counts, anchors])
    images = len(counts)
    corners = np.sort(random.uniform(0, 1, (images, room, 2, 2)), axis=2) * frame[::-1]
    port = {
        "boxes": corners.reshape(images, room, 4).astype(np.float32),
        "scores": np.sort(random.uniform(0, 1, (images, room)).astype(np.float32))[:, ::-1],
        "classes": random.integers(0, 80, (images, room)).astype(np.int32),
        "anchors": random.integers(0, anchors, (images, room)).astype(np.int32),
        "count": np.array(counts, np.int32),
        "counters": np.tile(np.array(counts, np.int32)[:, None], (1, 5)),
    }
    for n, count in enumerate(counts):
        for name in ("boxes", "scores", "classes", "anchors"):
            port[name][n, count:] = -1 if name == "anchors" else 0
    return {f"detections_{name}": array for name, array in port.items()}
