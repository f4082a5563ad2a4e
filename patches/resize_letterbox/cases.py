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
        "bgr, bottom right": {
            "color": "bgr",
            "pad": "bottom-right",
            "pad_value": 255,
            "scale": 1.0,
        },
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
    three = {"image": (1, 3, 32, 48)}
    yield Case("three to one", {"frame_images": [frame(90, 144)]}, {}, three, {"image": "float16"})
    yield Case("three to one, nv12", {"frame_images": [nv12(90, 144)]}, {}, three, frame="nv12")
    yield Case("same size", {"frame_images": [frame(32, 32)]}, {}, {"image": (1, 3, 32, 32)})
    yield Case("20000 x 1", {"frame_images": [frame(1, 20000)]}, {}, {"image": (1, 3, 32, 64)})
    yield Case("1 x 20000", {"frame_images": [frame(20000, 1)]}, {}, {"image": (1, 3, 32, 64)})
    rows = frame(40, 60)[:, 3:52]
    yield Case("row pitch", {"frame_images": [rows]}, {}, {"image": (1, 3, 32, 64)})
    unused = [frame(20, 30), np.zeros((0, 0, 3), np.uint8)]
    yield Case("unused place", {"frame_images": unused}, {}, {"image": (2, 3, 32, 64)})
    shapes = {"image": (len(sizes), 3, 64, 96)}
    for interpolation in ("area", "antialias"):
        params = {"interpolation": interpolation}
        yield Case(interpolation, {"frame_images": [frame(h, w) for h, w in sizes]}, params, shapes)
        inputs = {"frame_images": [frame(5000, 3), frame(3, 5000)]}
        long = {"image": (2, 3, 32, 48)}
        yield Case(f"{interpolation}, stretched", inputs, {**params, "fit": "stretch"}, long)
    images = [frame(h, w)[..., 1] for h, w in sizes]
    yield Case("gray", {"frame_images": images}, {}, shapes, frame="gray")
    images = [frame(h, w).reshape(3, h, w) for h, w in sizes]
    yield Case("planar", {"frame_images": images}, {}, shapes, frame="rgb-planar")
    params = {"color": "bgr", "interpolation": "area"}
    yield Case("planar bgr", {"frame_images": images}, params, shapes, frame="bgr-planar")
    yield Case("planar to bgr", {"frame_images": images}, params, shapes, frame="rgb-planar")
    images = [nv12(h, w) for h, w in [(362, 640), (64, 64), (2, 2), (18, 300)]]
    shapes = {"image": (4, 3, 64, 96)}
    for matrix in ("bt601", "bt709"):
        for levels in ("limited", "full"):
            params = {"yuv_matrix": matrix, "yuv_range": levels, "scale": 1.0}
            inputs = {"frame_images": images}
            yield Case(f"nv12, {matrix}, {levels}", inputs, params, shapes, frame="nv12")
    params = {"color": "bgr", "interpolation": "antialias"}
    inputs = {"frame_images": [nv12(40, 60)[:, 4:52]]}
    yield Case("nv12 with pitch", inputs, params, {"image": (1, 3, 32, 64)}, frame="nv12")


def frame(height: int, width: int) -> np.ndarray:
    """`[height, width, 3]` uint8 noise, the hardest to interpolate."""
    random = np.random.default_rng(height * width)
    return random.integers(0, 256, (height, width, 3), dtype=np.uint8)


def nv12(height: int, width: int) -> np.ndarray:
    """`[height * 3 / 2, width]` uint8 noise, of colors that there are and that there are not."""
    return frame(height * 3 // 2, width)[..., 0]
