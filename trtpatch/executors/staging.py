"""Pictures and the frame table on their way to the GPU, through pinned host memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trtpatch.frame import Frame

_ALIGNMENT = 256


class Staging:
    """Pinned memory for one batch, and the GPU memory that it is copied to.

    The room for pictures grows to the largest batch seen and then stays.
    """

    def __init__(self, frame_region: Any) -> None:
        """Take the GPU memory of the plan's `frame` region, a uint8 array."""
        import cupy

        self._region = frame_region
        self._pinned_table = cupy.cuda.alloc_pinned_memory(frame_region.nbytes)
        self.table = np.frombuffer(self._pinned_table, np.uint8, frame_region.nbytes)
        """The frame region as the host sees it; written between `wait` and `upload`."""
        self.table[...] = 0
        self._pinned: Any = None
        self._pixels: Any = None
        self._copied = 0
        self._event: Any = None

    def wait(self) -> None:
        """Wait until the last upload has left the pinned memory."""
        if self._event is not None:
            self._event.synchronize()

    def place(self, frames: Sequence[Frame]) -> list[Frame]:
        """Copy host pictures to pinned memory.

        Returns:
            The frames as the kernels will find them, with addresses in GPU memory.
        """
        sizes = [0 if f.on_device else f.height * f.width * 3 for f in frames]
        rooms = [math.ceil(size / _ALIGNMENT) * _ALIGNMENT for size in sizes]
        self._copied = sum(rooms)
        self._grow(self._copied)
        placed, offset = [], 0
        for frame, size, room in zip(frames, sizes, rooms, strict=True):
            if not frame.on_device:
                target = self._host[offset : offset + size]
                np.copyto(target.reshape(frame.height, frame.width, 3), frame.pixels)
                address = self._pixels.data.ptr + offset
                frame = replace(frame, address=address, pitch=frame.width * 3, on_device=True)
                offset += room
            placed.append(frame)
        return placed

    def _grow(self, size: int) -> None:
        import cupy

        if size and (self._pixels is None or self._pixels.nbytes < size):
            self._pinned = cupy.cuda.alloc_pinned_memory(size)
            self._host = np.frombuffer(self._pinned, np.uint8, size)
            self._pixels = cupy.empty(size, np.uint8)

    def upload(self, stream: Any) -> None:
        """Start the copies of the pictures and of the table."""
        if self._copied:
            source = self._host.ctypes.data
            self._pixels.data.copy_from_host_async(_pointer(source), self._copied, stream)
        self._region.data.copy_from_host_async(
            _pointer(self.table.ctypes.data), self._region.nbytes, stream
        )
        self._event = stream.record()

    def close(self) -> None:
        """Give the memory back."""
        self._pinned = self._pixels = self._region = None


def _pointer(address: int) -> Any:
    import ctypes

    return ctypes.c_void_p(address)
