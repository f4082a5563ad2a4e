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
    swapped = (args.frame_layout == "bgr") != (args.color == "bgr")
    for n, pixels in enumerate(args.frame_images):
        height, width = (int(size) for size in args.frame_sizes[n, :2])
        canvas = np.full((args.H, args.W, 3), args.pad_value)
        args.geometry[n] = 1, 1, 0, 0, width, height
        if height and width:
            h, w = picture_size(height, width, args)
            centred = args.pad == "center"
            top, left = ((args.H - h) // 2, (args.W - w) // 2) if centred else (0, 0)
            canvas[top : top + h, left : left + w] = resized(pixels, h, w, args.interpolation)
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


def resized(pixels: np.ndarray, height: int, width: int, interpolation: str) -> np.ndarray:
    """`[height, width, 3]` grey levels, int64, from `[H, W, 3]` uint8."""
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
