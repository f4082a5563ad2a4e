"""A ring of places in which batches wait for the GPU, so that copies overlap with computing.

A place has pinned host memory for the pictures and for the frame table, and GPU memory for the
pictures, the table and the results. While the GPU computes one batch, the next is copied into the
next place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from trtpatch.executors.capture import Walk
from trtpatch.executors.download import Blocks, DeviceRaw, Streams
from trtpatch.executors.walker import put_frames
from trtpatch.frame import Frame

_ALIGNMENT = 256
_CHUNK_BYTES = 1 << 20
_PINNED = 1  # cudaMemoryTypeHost: what pointerGetAttributes says of page-locked host memory


class Slot:
    """One place: what a batch needs from its arrival until the place is needed again.

    The room for pictures grows to the largest batch seen and then stays.

    Attributes:
        address: of the frame table, the plan's `frame` region, in pinned host memory.
        views: typed arrays over it there, by the buffer's name.
        table: where it goes on the GPU.
        arrays: typed arrays on the GPU over every buffer of the plan, by its name.
        results: where the walk leaves them.
        walk: bound to these arrays.
    """

    walk: Walk

    def __init__(
        self,
        host_table: np.ndarray[Any, Any],
        views: Mapping[str, Any],
        arrays: Mapping[str, Any],
        table: Any,
        results: Blocks,
    ) -> None:
        import cupy

        self.address: int = host_table.ctypes.data
        self.views = views
        self.arrays = arrays
        self.table = table
        self.results = results
        self._host = np.empty(0, np.uint8)
        self._pixels: Any = None
        self._copied = cupy.cuda.Event(disable_timing=True)
        self._settings: Mapping[str, float] = {}
        self._guest: Callable[[], DeviceRaw | None] = lambda: None

    def lend(self, raw: DeviceRaw) -> None:
        """Let results lie here for as long as the place is not needed."""
        self._guest = weakref.ref(raw)

    def vacate(self, stream: Any) -> None:
        """Wait until the batch that was here last has been read by the GPU; move its results out.

        Args:
            stream: what is put on it from now on may overwrite the results.
        """
        self.results.computed.synchronize()
        guest = self._guest()
        if guest is not None:
            guest.move_out()
        for reader in self.results.readers:
            stream.wait_event(reader)
        self.results.readers.clear()

    def place(
        self,
        frames: Sequence[Frame],
        settings: Mapping[str, float],
        copier: ThreadPoolExecutor,
        streams: Streams,
    ) -> None:
        """Enter a batch in the table, and start the copies of the pictures in host memory.

        Args:
            frames: the batch.
            settings: runtime parameters, by the names of their buffers.
            copier: threads that copy pageable memory to pinned memory.
            streams: the main one waits for the copies; the host waits only where they read the
                caller's own pinned memory, which is the caller's again when this returns.
        """
        if settings is not self._settings:
            for buffer, value in settings.items():
                self.views[buffer][0] = value
            self._settings = settings
        rooms = [0 if f.on_device else _room(f) for f in frames]
        total = sum(rooms)
        if not total:
            put_frames(self.views, frames)
            return
        self._grow(total, streams)
        placed, lent, offset = [], False, 0
        try:
            for frame, room in zip(frames, rooms, strict=True):
                if room:
                    target = self._pixels.data.ptr + offset
                    lent |= self._copy(frame, offset, copier, streams.into)
                    frame = frame._replace(address=target, pitch=frame.line_bytes, on_device=True)
                    offset += room
                placed.append(frame)
        finally:  # where one fails, those before it still need the place
            self._copied.record(streams.into)
            streams.main.wait_event(self._copied)
        put_frames(self.views, placed)
        if lent:
            self._copied.synchronize()

    def _copy(self, frame: Frame, offset: int, copier: ThreadPoolExecutor, stream: Any) -> bool:
        """Copy one picture; says whether the GPU reads the caller's memory."""
        lines, line_bytes = frame.lines, frame.line_bytes
        size = lines * line_bytes
        target = self._pixels.data.ptr + offset
        if frame.pitch == line_bytes and _is_pinned(frame.address):
            copy_in(target, frame.address, size, stream)
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
            copy_in(target + start, self._host.ctypes.data + offset + start, length, stream)
        return False

    def _grow(self, size: int, streams: Streams) -> None:
        import cupy

        if len(self._host) < size:
            pixels = cupy.empty(size, np.uint8)
            # The pool may give memory that what is still on the stream writes to.
            streams.into.wait_event(streams.main.record())
            self._host, self._pixels = pinned(size), pixels


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
