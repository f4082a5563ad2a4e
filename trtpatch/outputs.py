"""The outputs of patches of one's own, as part of a picture's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Outputs = dict[str, Array]

_MOST_LISTED = 1000
"""Numbers of a tensor that are written out."""


def outputs_of(arrays: Mapping[str, Array], row: int, by_image: Mapping[str, bool]) -> Outputs:
    """What belongs to one picture.

    Args:
        arrays: the tensors of its batch, by name.
        row: its index in the batch.
        by_image: for each of those wanted, whether the first axis is N. Of one that has no such
            axis, all belongs to each picture.
    """
    return {
        name: arrays[name][row, ...] if rows else arrays[name] for name, rows in by_image.items()
    }


def plain(outputs: Outputs) -> dict[str, Any]:
    """`outputs` as a key of a result's plain form; nothing where there are none."""
    if not outputs:
        return {}
    return {"outputs": {name: _plain(array) for name, array in outputs.items()}}


def _plain(array: Array) -> Any:
    if array.size <= _MOST_LISTED:
        return array.tolist()
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "min": array.min().item(),
        "max": array.max().item(),
    }


def in_words(name: str, array: Array) -> str:
    """`class_counts int32 [80]: min 0, max 3`."""
    head = f"{name} {array.dtype} {list(array.shape)}"
    if array.size < 2:
        return f"{head}: {', '.join(map(_number, array.ravel())) or 'empty'}"
    return f"{head}: min {_number(array.min())}, max {_number(array.max())}"


def _number(value: Any) -> str:
    return f"{value.item():.6g}" if value.dtype.kind == "f" else str(value)
