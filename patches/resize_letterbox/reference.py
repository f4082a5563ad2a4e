"""Frame to the model's picture input, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

ONE = 2048
"""A whole weight of the bilinear blend."""


def resize_letterbox(args: Any) -> None:
    """Resize, pad and normalise each frame; see patch.yaml for the parameters.

    Writes `args.image` `[N, 3, H, W]` and `args.geometry` `[N, 6]` (scale_x, scale_y, left, top in
    model px, width, height of the frame in px; 1, 1 and zeros for an unused place).
    """
    std = np.float32(args.std)
    gain = np.float32(args.scale) / std
    offset = -np.float32(args.mean) / std
    swapped = args.frame_layout.startswith("bgr") != (args.color == "bgr")
    for n, pixels in enumerate(args.frame_images):
        height, width = (int(size) for size in args.frame_sizes[n, :2])
        canvas = np.full((args.H, args.W, 3), args.pad_value)
        args.geometry[n] = 1, 1, 0, 0, width, height
        if height and width:
            h, w = picture_size(height, width, args)
            centred = args.pad == "center"
            top, left = ((args.H - h) // 2, (args.W - w) // 2) if centred else (0, 0)
            levels = grey_levels(pixels, args)
            canvas[top : top + h, left : left + w] = resized(levels, h, w, args.interpolation)
            scales = np.float32([width, height]) / np.float32([args.W, args.H])
            if args.fit == "letterbox":
                scales[:] = scales.max()
            args.geometry[n] = *scales, left, top, width, height
        if swapped:
            canvas = canvas[..., ::-1]
        args.image[n] = np.float32(canvas * gain.astype(float) + offset).transpose(2, 0, 1)


def picture_size(height: int, width: int, args: Any) -> tuple[int, int]:
    """Height and width, in px, of the resized frame inside the model's input."""
    if args.fit == "stretch":
        return args.H, args.W
    if args.W * height <= args.H * width:
        return _scaled(height, args.W, width, args.rounding), args.W
    return args.H, _scaled(width, args.H, height, args.rounding)


def grey_levels(pixels: np.ndarray, args: Any) -> np.ndarray:
    """`[H, W, 3]` uint8 in the frame's order of channels, red first where it is NV12."""
    if args.frame_layout in ("rgb", "bgr"):
        return pixels
    if args.frame_layout == "gray":
        return pixels[:, :, None].repeat(3, axis=2)
    if args.frame_layout == "nv12":
        return rgb_of_nv12(pixels, args.yuv_matrix, args.yuv_range)
    return pixels.transpose(1, 2, 0)


def rgb_of_nv12(pixels: np.ndarray, matrix: str, levels: str) -> np.ndarray:
    """`[H, W, 3]` uint8 from `[H * 3 / 2, W]`, as ITU-R BT.601 or BT.709 has it.

    In whole numbers of 2^-20 grey levels.
    """
    red, blue = (0.299, 0.114) if matrix == "bt601" else (0.2126, 0.0722)
    green = 1.0 - red - blue
    limited = levels == "limited"
    chroma = 255 / 224 if limited else 1.0
    height = pixels.shape[0] * 2 // 3
    u, v = (
        pixels[height:, i::2].astype(np.int64).repeat(2, axis=0).repeat(2, axis=1) - 128
        for i in range(2)
    )
    grey = (pixels[:height].astype(np.int64) - 16 * limited) * _fixed(255 / 219 if limited else 1)
    v_from_green = _fixed(2 * (1 - red) * red / green * chroma)
    u_from_green = _fixed(2 * (1 - blue) * blue / green * chroma)
    channels = (
        grey + v * _fixed(2 * (1 - red) * chroma),
        grey - v * v_from_green - u * u_from_green,
        grey + u * _fixed(2 * (1 - blue) * chroma),
    )
    return ((np.stack(channels, axis=2) + (1 << 19)) >> 20).clip(0, 255).astype(np.uint8)


def _fixed(value: float) -> int:
    return int(value * (1 << 20) + 0.5)


def resized(pixels: np.ndarray, height: int, width: int, interpolation: str) -> np.ndarray:
    """`[height, width, 3]` grey levels, int64, from `[H, W, 3]` uint8."""
    if interpolation in ("area", "antialias"):
        return covered(pixels, height, width, interpolation)
    first_y, second_y, weight_y = _samples(pixels.shape[0], height, interpolation)
    first_x, second_x, weight_x = _samples(pixels.shape[1], width, interpolation)
    weight_x, weight_y = weight_x[:, None], weight_y[:, None, None]

    def rows(y: np.ndarray, weight_y: np.ndarray) -> np.ndarray:
        row = pixels[y]
        blend = row[:, first_x] * (ONE - weight_x) + row[:, second_x] * weight_x
        return (blend >> 4) * weight_y >> 16  # quarters of a grey level, rounded as OpenCV does

    return (rows(first_y, ONE - weight_y) + rows(second_y, weight_y) + 2) >> 2


def _scaled(size: int, numerator: int, denominator: int, rounding: str) -> int:
    """`size * numerator / denominator`, to the nearest (half up) or down; at least 1."""
    half = denominator if rounding == "nearest" else 0
    return max(1, (2 * size * numerator + half) // (2 * denominator))


def _samples(
    source: int, picture: int, interpolation: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each picture pixel of an axis, two source pixels and the second one's weight of ONE."""
    step = -(-(source << 32) // picture)  # source px a picture px, in 2^-32 px, rounded up
    at = np.arange(picture, dtype=np.int64)
    if interpolation == "nearest":
        nearest = np.minimum(at * step >> 32, source - 1)
        return nearest, nearest, np.zeros_like(nearest)
    position = ((2 * at + 1) * step >> 1) - (1 << 31)
    weight = ((position & 0xFFFFFFFF) + (1 << 20)) >> 21
    first = position >> 32
    return np.maximum(first, 0), np.minimum(first + 1, source - 1), weight


def covered(pixels: np.ndarray, height: int, width: int, interpolation: str) -> np.ndarray:
    """As `resized`: each picture pixel is the mean of the source's pixels that it covers."""
    rows, weights_x = _weighted(pixels.swapaxes(0, 1).astype(np.float32), width, interpolation)
    sums, weights_y = _weighted(rows.swapaxes(0, 1), height, interpolation)
    means = sums / (weights_x * weights_y[:, None])[:, :, None]
    return (means + np.float32(0.5)).astype(np.int64)


def _weighted(source: np.ndarray, size: int, interpolation: str) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums along the first axis, one for each of `size` picture pixels, and the weights'.

    Weights are whole numbers of 2^-32 source px: the part of a pixel that is covered (area), or by
    how much its middle lies within reach (antialias: one source px, or one picture px if more).
    """
    pixel, end = 1 << 32, source.shape[0] - 1
    step = -(-(source.shape[0] << 32) // size)
    at = np.arange(size, dtype=np.int64)
    if interpolation == "area":
        begin = at * step
        first, last = begin >> 32, np.minimum((begin + step - 1) >> 32, end)
    else:
        middle, reach = (2 * at + 1) * step >> 1, max(step, pixel)
        first = np.maximum((middle - reach + pixel // 2) >> 32, 0)
        last = np.minimum(((middle + reach + pixel // 2) >> 32) - 1, end)
    sums = np.zeros((size, *source.shape[1:]), np.float32)
    total = np.zeros(size, np.float32)
    for index in range(int((last - first).max()) + 1):
        k = np.minimum(first + index, last)
        if interpolation == "area":
            weight = np.minimum(begin + step, (k + 1) * pixel) - np.maximum(begin, k * pixel)
        else:
            weight = np.maximum(reach - np.abs(k * pixel + pixel // 2 - middle), 0)
        weight = np.where(first + index <= last, weight, 0).astype(np.float32)
        sums += weight[:, None, None] * source[k]
        total += weight
    return sums, total
