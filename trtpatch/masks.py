"""Which pixels of a picture belong to each object."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from trtpatch.executors import Raw

Array = np.ndarray[Any, Any]

_BITS = 32


class Masks(Sequence[Array]):
    """A mask for each of a picture's objects, in their order, brought to the host when looked at.

    There are fewer masks than objects where the patch's room for them ran out; it is the objects
    that score best that have theirs.

    Attributes:
        boxes: `[B, 4]` int32 x, y, width, height in pixels of the picture: outside of it, a mask is
            False.
    """

    def __init__(self, raw: Raw, row: int, size: tuple[int, int]) -> None:
        """Take the port `masks` of a batch.

        Args:
            raw: results of the batch.
            row: the picture's index in the batch.
            size: height and width of the picture in pixels.
        """
        arrays = raw.host()
        count = int(arrays["masks_count"][row])
        self.boxes: Array = arrays["masks_boxes"][row, :count]
        self._starts = arrays["masks_starts"][row, :count].tolist()
        self._used = int(arrays["masks_used"][row])
        self._raw = raw
        self._row = row
        self._size = size

    @cached_property
    def _words(self) -> Array:
        return self._raw.fetch("masks_words", self._row, self._used)

    def __len__(self) -> int:
        return len(self.boxes)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        """`[H, W]` bool: where in the picture the object is."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        x, y, width, height = self.boxes[index].tolist()
        mask = np.zeros(self._size, bool)
        mask[y : y + height, x : x + width] = self.crop(index)
        return mask

    def crop(self, index: int) -> Array:
        """`[height, width]` bool: the part of a mask that lies in its box."""
        _, _, width, height = self.boxes[index].tolist()
        pitch = -(-width // _BITS)
        start = self._starts[index]
        words = self._words[start : start + height * pitch].astype("<u4")
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return bits.reshape(height, pitch * _BITS)[:, :width].astype(bool)


def runs(mask: Array) -> list[int]:
    """Lengths of the runs in a mask, as COCO has them.

    Args:
        mask: `[H, W]` bool.

    Returns:
        Pixels outside, inside, outside and so on, column after column.
    """
    flat = mask.ravel(order="F")
    turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths: list[int] = np.diff([0, *turns.tolist(), flat.size]).tolist()
    return [0, *lengths] if flat.size and flat[0] else lengths
