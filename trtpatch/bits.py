"""Arrays compared bit for bit, so that a NaN equals the same NaN and zeros have a sign."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def bytes_of(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`[..., bytes of an element]` uint8."""
    return np.ascontiguousarray(array)[..., np.newaxis].view(np.uint8)


def differ(a: Array, b: Array) -> Mask:
    """Where two arrays of one shape and type have other bits."""
    mask: Mask = (bytes_of(a) != bytes_of(b)).any(-1)
    return mask


def first_index(mask: Mask) -> str:
    """Where the first of what a mask holds is, as `[0, 3]`."""
    return str([int(i) for i in np.argwhere(mask)[0]])
