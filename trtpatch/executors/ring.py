"""A ring of places in which batches wait for the GPU, so that copies overlap with computing.

A place has pinned host memory for the pictures and for the frame table, and GPU memory for the
pictures, the table and the results. While the GPU computes one batch, the next is copied into the
next place.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from trtpatch.executors.capture import Walk
from trtpatch.executors.copier import COPIER, THREADS, Job
from trtpatch.executors.device_results import DeviceRaw
from trtpatch.executors.memory import Blocks, Streams, copy_bytes, enough_memory, pinned
from trtpatch.executors.walker import put_frames
from trtpatch.frame import Frame

_ALIGNMENT = 256
_PART_BYTES = 3 << 19
"""Larger parts begin to arrive too late, smaller ones cost more than they bring."""
_PARTS_A_THREAD = 4
"""Enough for a thread that is late; more would only cost."""
_PINNED = 1  # cudaMemoryTypeHost: what pointerGetAttributes says of page-locked host memory


class Slot:
    """One place: what a batch needs from its arrival until the place is needed again.

    The room for pictures grows to the largest batch seen and then stays.

    Attributes:
        address: of the frame table, the plan's `frame` region, in pinned host memory.
        views: typed arrays over it there, by the buffer's name.
        table: address of where it goes on the GPU.
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
        table: int,
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
        if not self.results.computed.done:  # asking is quicker than waiting
            self.results.computed.synchronize()
        guest = self._guest()
        if guest is not None:
            guest.move_out()
        for reader in self.results.readers:
            stream.wait_event(reader)
        self.results.readers.clear()

    def place(
        self, frames: Sequence[Frame], settings: Mapping[str, float], streams: Streams
    ) -> None:
        """Enter a batch in the table, and start the copies of the pictures in host memory.

        Args:
            frames: the batch.
            settings: runtime parameters, by the names of their buffers.
            streams: the main one waits for the copies; the host waits only where they read the
                caller's own pinned memory, which is the caller's again when this returns.
        """
        if settings is not self._settings:
            for buffer, value in settings.items():
                self.views[buffer][0] = value
            self._settings = settings
        if all(frame.on_device for frame in frames):
            put_frames(self.views, frames)
            return
        rooms = [0 if frame.on_device else _room(frame) for frame in frames]
        self._grow(sum(rooms), streams)
        base = self._pixels.data.ptr
        places = [base + offset for offset in itertools.accumulate(rooms[:-1], initial=0)]
        placed = [
            frame._replace(address=place, pitch=frame.line_bytes) if room else frame
            for frame, room, place in zip(frames, rooms, places, strict=True)
        ]
        put_frames(self.views, placed)
        pairs = [pair for *pair, room in zip(frames, placed, rooms, strict=True) if room]
        lent = False
        try:
            lent = self._copy_in(pairs, streams.into)
        finally:
            self._copied.record(streams.into)
            streams.main.wait_event(self._copied)
        if lent:
            self._copied.synchronize()

    def _copy_in(self, pairs: Sequence[Sequence[Frame]], stream: Any) -> bool:
        """Copy pictures to their places on the GPU.

        Args:
            pairs: a picture, and where it is to be.
            stream: for the copies to the GPU.

        Returns:
            Whether a copy that is under way reads the caller's own memory.
        """
        total = sum(_room(picture) for picture, _ in pairs)
        most = max(_PART_BYTES, total // (_PARTS_A_THREAD * THREADS))
        lent, jobs = False, list[Job]()
        for picture, place in pairs:
            if picture.pitch == picture.line_bytes and _is_pinned(picture.address):
                size = picture.lines * picture.line_bytes
                copy_bytes(place.address, picture.address, size, stream)
                lent = True
            else:
                jobs += self._parts(picture, place.address, most, stream)
        COPIER.run(jobs)
        return lent

    def _parts(self, picture: Frame, place: int, most: int, stream: Any) -> Iterator[Job]:
        """What brings a picture through pinned memory to its place, some lines at a time."""
        lines, line_bytes = picture.lines, picture.line_bytes
        offset = place - self._pixels.data.ptr
        host = self._host[offset : offset + lines * line_bytes].reshape(lines, line_bytes)
        pixels = picture.pixels.reshape(lines, line_bytes)
        step = max(1, most // line_bytes)
        for first in range(0, lines, step):
            rows = slice(first, first + step)
            yield partial(_bring, pixels[rows], host[rows], place + first * line_bytes, stream)

    def _grow(self, size: int, streams: Streams) -> None:
        import cupy

        if len(self._host) < size:
            with streams.main, enough_memory(f"the pictures of a batch, {size} bytes"):
                pixels = cupy.empty(size, np.uint8)
            # The pool may give memory that what is still on the stream writes to.
            streams.into.wait_event(streams.main.record())
            self._host, self._pixels = pinned(size), pixels


def _bring(
    pixels: np.ndarray[Any, Any], host: np.ndarray[Any, Any], target: int, stream: Any
) -> None:
    np.copyto(host, pixels)
    copy_bytes(target, host.ctypes.data, host.nbytes, stream)


def _is_pinned(address: int) -> bool:
    from cupy.cuda import runtime

    return bool(runtime.pointerGetAttributes(address).type == _PINNED)


def _room(frame: Frame) -> int:
    size = frame.lines * frame.line_bytes
    return -(-size // _ALIGNMENT) * _ALIGNMENT
