"""What the NumPy references of patches for raw heads share; heads.cuh has the same for a GPU.

Arrays are float32 throughout. Anchors lie level after level, in a level row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def grid(
    heights: Sequence[int], widths: Sequence[int], strides: Sequence[int]
) -> tuple[Array, Array]:
    """Each anchor's cell and stride.

    Args:
        heights, widths: of each level, in cells.
        strides: of each level, in pixels.

    Returns:
        cells: `[A, 2]` x y, counted in cells.
        strides: `[A, 1]` pixels.
    """
    cells, sizes = [], []
    for height, width, stride in zip(heights, widths, strides, strict=True):
        y, x = np.mgrid[:height, :width]
        cells.append(np.stack([x.ravel(), y.ravel()], axis=1))
        sizes.append(np.full((height * width, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(sizes).astype(np.float32)


def rows(levels: Sequence[Array], image: int) -> Array:
    """`[A, D]` of one image, one row an anchor, level after level.

    Args:
        levels: each `[N, D, H, W]`, or `[N, P, D]` where an anchor is a row already.
        image: index in the batch.
    """
    flat = [
        one[image] if one.ndim == 3 else one[image].reshape(one.shape[1], -1).T for one in levels
    ]
    return np.concatenate(flat).astype(np.float32)


def sigmoid(logits: Array) -> Array:
    """`1 / (1 + exp(-logits))`."""
    with np.errstate(over="ignore"):
        probability: Array = 1 / (1 + np.exp(-logits))
    return probability


def expectation(bins: Array) -> Array:
    """Expected value of distributions over 0 to R - 1, given by their logits along the last axis.

    So tell heads the sides of their boxes since Generalized Focal Loss (Li et al., 2020).

    Args:
        bins: `[..., R]`; where R is 1, the value itself.

    Returns:
        `[...]`.
    """
    if bins.shape[-1] == 1:
        return bins[..., 0]
    with np.errstate(invalid="ignore"):
        weights = np.exp(bins - bins.max(axis=-1, keepdims=True))
        moment = weights @ np.arange(bins.shape[-1], dtype=np.float32)
        expected: Array = moment / weights.sum(axis=-1)
    return expected


def from_sides(points: Array, distances: Array) -> Array:
    """Boxes whose sides lie so far from a point.

    Args:
        points: `[A, 2]` x y.
        distances: `[A, 4]` left, top, right, bottom.

    Returns:
        `[A, 4]` x1 y1 x2 y2, in the unit of the arguments.
    """
    with np.errstate(invalid="ignore"):
        return np.concatenate([points - distances[:, :2], points + distances[:, 2:]], axis=1)


def from_centres(centres: Array, sizes: Array) -> Array:
    """Boxes around their centres.

    Args:
        centres: `[A, 2]` x y.
        sizes: `[A, 2]` width, height.

    Returns:
        `[A, 4]` x1 y1 x2 y2, in the unit of the arguments.
    """
    with np.errstate(invalid="ignore"):
        half = sizes * np.float32(0.5)
        return np.concatenate([centres - half, centres + half], axis=1)
