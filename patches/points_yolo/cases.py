"""Key points and detections that matter to points_yolo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield case("17 points with a confidence", [3, 0, 20], 17)
    yield case("no confidence", [20, 1], 5, values=2)
    yield case("one point", [5], 1)
    yield case("35 points", [7, 9], 35, values=2)
    yield case("no detection", [0], 17)
    raw = {"strides": [8, 16]}
    yield case("raw", [9, 20], 17, **raw)
    yield case("raw, no confidence", [20, 1], 5, values=2, **raw)
    special = case("not finite", [2], 3)
    special.inputs["columns"][0, 0, :4] = np.nan, np.inf, -np.inf, np.nan
    yield special


def case(name: str, counts: list[int], points: int, *, values: int = 3, **params: Any) -> Case:
    """Detections of so many anchors of each image, in room for 20."""
    random = np.random.default_rng(points)
    inputs = detections(counts, anchors=50)
    columns = random.uniform(-20, 660, (len(counts), 20, points * values)).astype(np.float32)
    geometry = np.tile(np.float32([1.7, 1.3, 3, 5, 640, 480]), (len(counts), 1))
    inputs |= {"columns": columns, "geometry": geometry}
    # Of 8 and of 16 px this picture has 42 and 9 cells.
    return Case(name, inputs, {"V": values, **params}, shapes={"model": (56, 48)})
