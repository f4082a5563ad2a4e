"""A ring of places in which batches wait for the GPU, so that copies overlap with computing.

A place has pinned host memory for the pictures and for the frame table, and GPU memory for the
pictures. While the GPU computes one batch, the next is copied into the next place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trtpatch.frame import Frame

_ALIGNMENT = 256


class Slot:
    """One place: what a batch needs between its arrival and its last kernel.

    The room for pictures grows to the largest batch seen and then stays.

    Attributes:
        table: the plan's `frame` region as the host sees it, uint8; pinned.
    """

    def __init__(self, table_bytes: int) -> None:
        import cupy

        self._pinned_table = cupy.cuda.alloc_pinned_memory(table_bytes)
        self.table = np.frombuffer(self._pinned_table, np.uint8, table_bytes)
        self.table[...] = 0
        self._pinned: Any = None
        self._host = np.empty(0, np.uint8)
        self._pixels: Any = None
        self._used: Any = None

    def wait(self) -> None:
        """Wait until the batch that was here last has been read by the GPU."""
        if self._used is not None:
            self._used.synchronize()

    def release(self, stream: Any) -> None:
        """Free the place as soon as what is on `stream` now has run."""
        self._used = stream.record()

    def place(self, frames: Sequence[Frame], copy_stream: Any, stream: Any) -> list[Frame]:
        """Copy host pictures in, on `copy_stream`; `stream` waits for them, the host does not.

        Returns:
            The frames as kernels will find them, with addresses in GPU memory.
        """
        rooms = [
            0 if f.on_device else -(-f.height * f.width * 3 // _ALIGNMENT) * _ALIGNMENT
            for f in frames
        ]
        total = sum(rooms)
        if not total:
            return list(frames)
        self._grow(total)
        placed, offset = [], 0
        for frame, room in zip(frames, rooms, strict=True):
            if not frame.on_device:
                target = self._host[offset : offset + frame.height * frame.width * 3]
                np.copyto(target.reshape(frame.height, frame.width, 3), frame.pixels)
                address = self._pixels.data.ptr + offset
                frame = replace(frame, address=address, pitch=frame.width * 3, on_device=True)
                offset += room
            placed.append(frame)
        copy_in(self._pixels, self._host, total, copy_stream)
        stream.wait_event(copy_stream.record())
        return placed

    def _grow(self, size: int) -> None:
        import cupy

        if len(self._host) < size:
            self._pinned = cupy.cuda.alloc_pinned_memory(size)
            self._host = np.frombuffer(self._pinned, np.uint8, size)
            self._pixels = cupy.empty(size, np.uint8)


class Ring:
    """The places of one executor, taken in turn."""

    def __init__(self, table_bytes: int, depth: int) -> None:
        self._table_bytes = table_bytes
        self._slots = [Slot(table_bytes) for _ in range(depth)]
        self._next = 0

    def at_least(self, depth: int) -> None:
        """Have `depth` places or more."""
        while len(self._slots) < depth:
            self._slots.append(Slot(self._table_bytes))

    def take(self) -> Slot:
        """The next place; waits where the GPU has not yet read the batch that is in it."""
        slot = self._slots[self._next % len(self._slots)]
        self._next += 1
        slot.wait()
        return slot


def copy_in(target: Any, source: np.ndarray[Any, Any], size: int, stream: Any) -> None:
    """Start a copy from pinned host memory to the GPU."""
    from cupy.cuda import runtime

    runtime.memcpyAsync(
        target.data.ptr, source.ctypes.data, size, runtime.memcpyHostToDevice, stream.ptr
    )


def write_settings(views: Mapping[str, Any], settings: Mapping[str, float]) -> None:
    """Put runtime parameters into a table."""
    for buffer, value in settings.items():
        views[buffer][0] = value
