"""Key points and detections that matter to keypoints_yunet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield case("five points", [3, 0, 20], 5, (320, 320))
    yield case("one point, one level", [5], 1, (56, 72), strides=[8])
    yield case("float16", [20, 1], 17, (64, 32), dtype=np.float16)
    yield case("no detection", [0], 5, (32, 32))


def case(
    name: str,
    counts: list[int],
    points: int,
    model: tuple[int, int],
    *,
    dtype: type[np.floating] = np.float32,
    **params: list[int],
) -> Case:
    """Detections of so many anchors of each image, in room for 20."""
    random = np.random.default_rng(points)
    cells = [(model[0] // s) * (model[1] // s) for s in params.get("strides", [8, 16, 32])]
    levels = [random.normal(0, 2, (len(counts), one, 2 * points)).astype(dtype) for one in cells]
    geometry = np.tile(np.float32([1.7, 1.3, 3, 5, 640, 480]), (len(counts), 1))
    inputs = {**detections(counts, anchors=sum(cells)), "geometry": geometry, "points": levels}
    return Case(name, inputs, params, {"model": model})
