"""Maps that matter to resize_feature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        yield case(f"larger, {coordinates}", (7, 9), (28, 36), coordinates=coordinates)
        yield case(f"smaller, {coordinates}", (30, 41), (8, 12), coordinates=coordinates)
        yield case(f"to one cell, {coordinates}", (5, 8), (1, 1), coordinates=coordinates)
        yield case(f"from one cell, {coordinates}", (1, 1), (5, 8), coordinates=coordinates)
        yield case(f"one row, {coordinates}", (1, 9), (3, 35), coordinates=coordinates)
    yield case("float16", (7, 9), (28, 36), dtype=np.float16)
    yield case("35 columns, float16", (9, 17), (11, 35), dtype=np.float16)
    yield case("same size", (6, 8), (6, 8))
    yield Case("width alone", {"features": maps(1, 3, (6, 8))}, {"width": 20})
    yield Case("height alone", {"features": maps(1, 3, (6, 8))}, {"height": 9})
    yield Case("many maps", {"features": maps(3, 200, (2, 2))}, {"height": 3, "width": 5})
    given = maps(1, 2, (4, 4))
    given[0, 0, 1, 1], given[0, 1, 2, 2] = np.nan, np.inf
    yield Case("not finite", {"features": given}, {"height": 7, "width": 8})


def case(
    name: str,
    given: tuple[int, int],
    wanted: tuple[int, int],
    *,
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """Maps of a given height and width, to others of the same element type."""
    params |= {"height": wanted[0], "width": wanted[1]}
    shapes, dtypes = {"resized": (2, 3, *wanted)}, {"resized": np.dtype(dtype).name}
    return Case(name, {"features": maps(2, 3, given).astype(dtype)}, params, shapes, dtypes)


def maps(images: int, count: int, size: tuple[int, int]) -> np.ndarray:
    """`[images, count, *size]` float32, of order one."""
    random = np.random.default_rng(count)
    return random.normal(0, 1, (images, count, *size)).astype(np.float32)
