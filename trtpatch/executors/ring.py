"""A ring of places in which batches wait for the GPU, so that copies overlap with computing.

A place has pinned host memory for the pictures and for the frame table, and GPU memory for the
pictures. While the GPU computes one batch, the next is copied into the next place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from trtpatch.executors.walker import put_frames
from trtpatch.frame import Frame

_ALIGNMENT = 256
_CHUNK_BYTES = 1 << 20
_COPY_THREADS = min(8, os.cpu_count() or 1)
_PINNED = 1  # cudaMemoryTypeHost: what pointerGetAttributes says of page-locked host memory


class Slot:
    """One place: what a batch needs between its arrival and its last kernel.

    The room for pictures grows to the largest batch seen and then stays.

    Attributes:
        table: the plan's `frame` region as the host sees it, uint8; pinned.
        address: of the table.
        views: typed arrays over the table, by the buffer's name.
    """

    def __init__(self, table: np.ndarray[Any, Any], views: Mapping[str, Any]) -> None:
        import cupy

        self.table = table
        self.address: int = table.ctypes.data
        self.views = views
        self._host = np.empty(0, np.uint8)
        self._pixels: Any = None
        self._copied = cupy.cuda.Event(disable_timing=True)
        self._used = cupy.cuda.Event(disable_timing=True)

    def wait(self) -> None:
        """Wait until the batch that was here last has been read by the GPU."""
        self._used.synchronize()

    def release(self, stream: Any) -> None:
        """Free the place as soon as what is on `stream` now has run."""
        self._used.record(stream)

    def place(
        self, frames: Sequence[Frame], copier: ThreadPoolExecutor, copy_stream: Any, stream: Any
    ) -> None:
        """Enter a batch in the table, and start the copies of the pictures in host memory.

        Args:
            frames: the batch.
            copier: threads that copy pageable memory to pinned memory.
            copy_stream: where the copies to the GPU go.
            stream: waits for them; the host waits only where it reads from the caller's own
                pinned memory, which is the caller's again when this returns.
        """
        rooms = [0 if f.on_device else _room(f) for f in frames]
        total = sum(rooms)
        if not total:
            put_frames(self.views, frames)
            return
        self._grow(total, copy_stream, stream)
        placed, lent, offset = [], False, 0
        try:
            for frame, room in zip(frames, rooms, strict=True):
                if room:
                    target = self._pixels.data.ptr + offset
                    lent |= self._copy(frame, offset, copier, copy_stream)
                    frame = frame._replace(address=target, pitch=frame.line_bytes, on_device=True)
                    offset += room
                placed.append(frame)
        finally:  # where one fails, those before it still need the place
            self._copied.record(copy_stream)
            stream.wait_event(self._copied)
        put_frames(self.views, placed)
        if lent:
            self._copied.synchronize()

    def _copy(
        self, frame: Frame, offset: int, copier: ThreadPoolExecutor, copy_stream: Any
    ) -> bool:
        """Copy one picture; says whether the GPU reads the caller's memory."""
        lines, line_bytes = frame.lines, frame.line_bytes
        size = lines * line_bytes
        target = self._pixels.data.ptr + offset
        if frame.pitch == line_bytes and _is_pinned(frame.address):
            copy_in(target, frame.address, size, copy_stream)
            return True
        host = self._host[offset : offset + size].reshape(lines, line_bytes)
        pixels = frame.pixels.reshape(lines, line_bytes)
        step = max(1, _CHUNK_BYTES // line_bytes)
        parts: list[tuple[int, int, Future[None]]] = []
        for first in range(0, lines, step):
            last = min(first + step, lines)
            part = copier.submit(np.copyto, host[first:last], pixels[first:last])
            parts.append((first, last, part))
        for first, last, part in parts:
            part.result()
            start, length = first * line_bytes, (last - first) * line_bytes
            copy_in(target + start, self._host.ctypes.data + offset + start, length, copy_stream)
        return False

    def _grow(self, size: int, copy_stream: Any, stream: Any) -> None:
        import cupy

        if len(self._host) < size:
            pixels = cupy.empty(size, np.uint8)
            # The pool may give memory that what is still on the stream writes to.
            copy_stream.wait_event(stream.record())
            self._host, self._pixels = pinned(size), pixels


class Ring:
    """The places of one executor, taken in turn."""

    def __init__(self, make: Callable[[], Slot], depth: int) -> None:
        """Have `depth` places, each from a call of `make`."""
        self._make = make
        self._slots = [make() for _ in range(depth)]
        self._next = 0
        self.copier = ThreadPoolExecutor(_COPY_THREADS, "trtpatch-copy")

    def at_least(self, depth: int) -> None:
        """Have `depth` places or more."""
        while len(self._slots) < depth:
            self._slots.append(self._make())

    def take(self) -> Slot:
        """The next place; waits where the GPU has not yet read the batch that is in it."""
        slot = self._slots[self._next % len(self._slots)]
        self._next += 1
        slot.wait()
        return slot

    def close(self) -> None:
        """End the threads and give the places up."""
        self.copier.shutdown()
        self._slots.clear()


def pinned(size: int) -> np.ndarray[Any, Any]:
    """Page-locked host memory as an array of bytes."""
    import cupy

    return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)


def copy_in(target: int, source: int, size: int, stream: Any) -> None:
    """Start a copy from pinned host memory to the GPU, by addresses."""
    from cupy.cuda import runtime

    runtime.memcpyAsync(target, source, size, runtime.memcpyHostToDevice, stream.ptr)


def _is_pinned(address: int) -> bool:
    from cupy.cuda import runtime

    return bool(runtime.pointerGetAttributes(address).type == _PINNED)


def _room(frame: Frame) -> int:
    size = frame.lines * frame.line_bytes
    return -(-size // _ALIGNMENT) * _ALIGNMENT
