"""Frames that matter to resize_letterbox."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trtpatch.verify import Case

IMAGENET = {"scale": 1 / 255, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


def cases() -> Iterator[Case]:
    sizes = [(361, 640), (64, 64), (17, 300), (300, 17), (1, 1), (2, 2)]
    for name, params in {
        "plain": {},
        "bgr, bottom right": {"color": "bgr", "pad": "bottom-right", "scale": 1.0},
        "stretch": {"fit": "stretch", **IMAGENET},
        "nearest": {"interpolation": "nearest", "pad_value": 0, "rounding": "down"},
        "imagenet": IMAGENET,
    }.items():
        inputs = {"frame_images": [frame(height, width) for height, width in sizes]}
        shapes = {"image": (len(sizes), 3, 64, 96)}
        for dtype, layout in (("float32", "rgb"), ("float16", "bgr")):
            yield Case(f"{name}, {dtype}", inputs, params, shapes, {"image": dtype}, layout)
    for dtype in ("float32", "float16"):
        inputs, shapes = {"frame_images": [frame(50, 70)]}, {"image": (1, 3, 33, 35)}
        yield Case(f"odd width, {dtype}", inputs, {}, shapes, {"image": dtype})
    yield Case("larger", {"frame_images": [frame(30, 41)]}, {}, {"image": (1, 3, 128, 160)})
    yield Case("same size", {"frame_images": [frame(32, 32)]}, {}, {"image": (1, 3, 32, 32)})
    yield Case("20000 x 1", {"frame_images": [frame(1, 20000)]}, {}, {"image": (1, 3, 32, 64)})
    yield Case("1 x 20000", {"frame_images": [frame(20000, 1)]}, {}, {"image": (1, 3, 32, 64)})
    rows = frame(40, 60)[:, 3:52]
    yield Case("row pitch", {"frame_images": [rows]}, {}, {"image": (1, 3, 32, 64)})
    unused = [frame(20, 30), np.zeros((0, 0, 3), np.uint8)]
    yield Case("unused place", {"frame_images": unused}, {}, {"image": (2, 3, 32, 64)})


def frame(height: int, width: int) -> np.ndarray:
    """`[height, width, 3]` uint8 noise, the hardest to interpolate."""
    random = np.random.default_rng(height * width)
    return random.integers(0, 256, (height, width, 3), dtype=np.uint8)
