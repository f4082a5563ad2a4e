"""Frames that matter to resize_example."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case


def cases() -> Iterator[Case]:
    frames = {"frame_images": [frame(36, 64), frame(1, 1), frame(300, 17)]}
    for dtype in ("float32", "float16"):
        yield Case(f"three sizes, {dtype}", frames, {}, {"image": (3, 3, 32, 48)}, {"image": dtype})
    bgr = {"color": "bgr", "scale": 1.0}
    yield Case("channels swapped", frames, bgr, {"image": (3, 3, 33, 35)})
    yield Case("frames in BGR", frames, {}, {"image": (3, 3, 32, 48)}, frame="bgr")
    rows = frame(40, 60)[:, 3:52]
    yield Case("rows that lie apart", {"frame_images": [rows]}, {}, {"image": (1, 3, 32, 64)})
    unused = [frame(20, 30), np.zeros((0, 0, 3), np.uint8)]
    yield Case("an unused place", {"frame_images": unused}, {}, {"image": (2, 3, 32, 64)})


def frame(height: int, width: int) -> np.ndarray:
    """`[height, width, 3]` uint8 noise."""
    random = np.random.default_rng(height * width)
    return random.integers(0, 256, (height, width, 3), dtype=np.uint8)
