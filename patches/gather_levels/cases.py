"""Maps and detections that matter to gather_levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield case("three levels", [3, 0, 20], 32, [(20, 30), (10, 15), (5, 8)])
    yield case("one level", [5], 17, [(7, 5)])
    yield case("one column", [1, 7], 1, [(4, 4), (2, 2)])
    yield case("float16", [20, 20], 51, [(8, 8), (4, 4)], dtype=np.float16)
    yield case("one cell a level", [20], 3, [(1, 1), (1, 1)])


def case(
    name: str,
    counts: list[int],
    columns: int,
    levels: list[tuple[int, int]],
    *,
    dtype: type[np.floating] = np.float32,
) -> Case:
    """Detections of so many cells of each image, in room for 20; levels by height and width."""
    random = np.random.default_rng(columns)
    maps = [random.normal(0, 1, (len(counts), columns, *size)).astype(dtype) for size in levels]
    anchors = sum(height * width for height, width in levels)
    return Case(name, {**detections(counts, anchors=anchors), "maps": maps})
