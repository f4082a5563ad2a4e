"""Maps to another height and width, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np


def resize_feature(args: Any) -> None:
    """Interpolate `args.features` `[N, C, h, w]` to `args.resized` `[N, C, H, W]`."""
    features = args.features.astype(np.float32)
    first, second, weight = samples(args.h, args.H, args.coordinates)
    rows = blend(features[:, :, first], features[:, :, second], weight[:, None])
    first, second, weight = samples(args.w, args.W, args.coordinates)
    args.resized[...] = blend(rows[..., first], rows[..., second], weight)


def samples(given: int, wanted: int, coordinates: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of `wanted` cells, two of the `given` ones, and the weight of the second."""
    half, at = np.float32(0.5), np.arange(wanted).astype(np.float32)
    step = np.float32(given) / np.float32(wanted)
    place = (at + half) * step - half
    if coordinates == "asymmetric":
        place = at * step
    elif coordinates == "align_corners" and wanted > 1:
        place = at * (np.float32(given - 1) / np.float32(wanted - 1))
    elif coordinates in ("align_corners", "pytorch_half_pixel") and wanted == 1:
        place = np.zeros(1, np.float32)
    place = place.clip(0, np.float32(given - 1))
    first = place.astype(np.int64)
    return first, np.minimum(first + 1, given - 1), place - first.astype(np.float32)


def blend(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The first at weight 0, the second at weight 1."""
    with np.errstate(invalid="ignore"):
        return first + (second - first) * weight
