"""Maps and frames that matter to segment_argmax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    for dtype in (np.float32, np.float16):
        for size in ("frame", "head"):
            name = f"{np.dtype(dtype).name}, {size}"
            yield case(f"19 classes, {name}", 19, (24, 40), dtype=dtype, size=size)
            yield case(f"35 columns, {name}", 3, (11, 35), dtype=dtype, size=size)
            yield case(f"one map, {name}", 1, (12, 20), dtype=dtype, size=size, threshold=0.3)
    yield case("maps as large as the picture", 5, (96, 160))
    yield case("205 classes", 205, (3, 5))
    yield case("one cell", 4, (1, 1))
    yield case("frames of one pixel, and unused", 4, (24, 40), frames=[(1, 1), (0, 0), (2, 1)])
    yield case("unused, cells", 4, (24, 40), frames=[(0, 0), (7, 9)], size="head")
    yield case("no room for one", 4, (8, 8), frames=[(90, 91), (30, 30), (29, 31)], room_pixels=900)
    yield case("room for one pixel", 4, (1, 1), frames=[(1, 1), (2, 1)], room_pixels=1)
    equal = case("equal logits", 7, (24, 40))
    equal.inputs["logits"][:] = 0.5
    yield equal
    nans = case("not a number", 4, (24, 40), size="head")
    nans.inputs["logits"][0, 1, 3, 3:9] = np.nan
    nans.inputs["logits"][0, :, 4, 4] = np.nan
    nans.inputs["logits"][0, 2, 5, 5] = np.inf
    nans.inputs["logits"][0, :, 6, 6] = -np.inf
    yield nans


def case(
    name: str,
    classes: int,
    maps: tuple[int, int],
    *,
    frames: list[tuple[int, int]] | None = None,
    dtype: type[np.floating] = np.float32,
    **params: Any,
) -> Case:
    """Frames of given heights and widths, letterboxed into 160 x 96 px, and maps for that."""
    frames = frames or [(61, 103), (50, 33)]
    random = np.random.default_rng(classes)
    geometry = []
    for height, width in frames:
        scale = max(height / 96, width / 160) or 1
        left, top = (160 - round(width / scale)) // 2, (96 - round(height / scale)) // 2
        geometry.append([scale, scale, left, top, width, height] if height else [1, 1, 0, 0, 0, 0])
    logits = random.normal(0, 1, (len(frames), classes, *maps)).astype(dtype)
    inputs = {"geometry": np.float32(geometry), "logits": logits}
    return Case(name, inputs, {"room_pixels": 10000, **params}, {"model": (96, 160)})
