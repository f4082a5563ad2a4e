"""A batch's results in GPU memory, and their way back to the host."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trtpatch.executors import Arrays
from trtpatch.executors.capture import ONE_AT_A_TIME
from trtpatch.executors.memory import Blocks, Streams, copy_bytes, enough_memory, stream_of
from trtpatch.plan import Buffer, Plan, Region


@dataclass(frozen=True)
class Layout:
    """Where each field of the results lies in a region."""

    fields: Mapping[str, Buffer]
    nbytes: int

    @classmethod
    def of(cls, plan: Plan, region: Region) -> Layout:
        """The layout of those of a plan's results that lie in a region."""
        found = ((field, plan.buffers[name]) for field, name in plan.result_buffers.items())
        fields = {field: buffer for field, buffer in found if buffer.region == region}
        return cls(fields, plan.region_bytes(region))

    def views(self, block: Any) -> dict[str, Any]:
        """A typed array over each field of a block of bytes on the GPU."""
        return {field: buffer.view(block) for field, buffer in self.fields.items()}

    def host_views(self, block: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The same over bytes on the host."""
        return {
            field: np.ndarray(buffer.shape, buffer.dtype, block, buffer.offset)
            for field, buffer in self.fields.items()
        }


class DeviceRaw:
    """See `Raw`. They lie in the batch's place until that is needed, then in their own memory."""

    def __init__(self, blocks: Blocks, layouts: tuple[Layout, Layout], streams: Streams) -> None:
        """Take blocks that are filled once their event has passed.

        Args:
            blocks: of the place.
            layouts: of the results and of the lazy ones.
            streams: of the executor.
        """
        self._blocks = blocks
        self._lent = True
        self._layout, self._lazy_layout = layouts
        self._streams = streams
        self._lock = threading.RLock()  # the collector may come back here in the middle
        self._downloaded: Any = None
        self._pinned: Any = None
        self._host: Arrays | None = None

    def move_out(self) -> None:
        """Have the results copied to memory of their own; a second time does nothing."""
        with self._lock, self._streams.device:
            if self._lent:
                self._blocks = self._copied(self._streams.main)
                self._lent = False

    def _copied(self, stream: Any) -> Blocks:
        """A copy, made on a stream, in memory that goes back to the pool in that stream's order."""
        import cupy

        size, lazy_size = self._layout.nbytes, self._lazy_layout.nbytes
        with stream, enough_memory(f"a batch's results, {size + lazy_size} bytes"):
            made = Blocks(cupy.cuda.alloc(size), None)
            if self._lazy_layout.fields:
                made.lazy = cupy.cuda.alloc(lazy_size)
            stream.wait_event(self._blocks.computed)
            copy_bytes(made.result.ptr, self._blocks.result.ptr, size, stream)
            if self._lazy_layout.fields:
                copy_bytes(made.lazy.ptr, self._blocks.lazy.ptr, lazy_size, stream)
            made.computed.record(stream)
        return made

    def prefetch(self) -> None:
        """See `Raw.prefetch`."""
        with self._lock:
            self._prefetch()

    def _prefetch(self) -> None:
        import cupy

        if self._pinned is None and self._host is None:
            out, blocks = self._streams.out, self._blocks
            with self._streams.device:
                self._downloaded = cupy.cuda.Event(disable_timing=True)
            pinned = cupy.cuda.alloc_pinned_memory(self._layout.nbytes)
            out.wait_event(blocks.computed)
            copy_bytes(pinned.ptr, blocks.result.ptr, self._layout.nbytes, out)
            self._downloaded.record(out)
            blocks.readers.append(self._downloaded)
            self._pinned = pinned

    def host(self) -> Arrays:
        """See `Raw.host`."""
        with self._lock:
            if self._host is None:
                self._prefetch()
                self._downloaded.synchronize()
                if self._downloaded in self._blocks.readers:
                    self._blocks.readers.remove(self._downloaded)
                block = np.frombuffer(self._pinned, np.uint8, self._layout.nbytes).copy()
                self._host = self._layout.host_views(block)
                self._pinned = None
            return self._host

    def fetch(self, field: str, image: int, count: int) -> np.ndarray[Any, Any]:
        """See `Raw.fetch`."""
        with self._lock:  # so that the place is not needed meanwhile
            out = self._streams.out
            out.wait_event(self._blocks.computed)
            row = _views(self._lazy_layout, self._blocks.lazy)[field][image, :count]
            array: np.ndarray[Any, Any] = row.get(stream=out)
            return array

    def device(self, stream: int | None) -> Mapping[str, Any]:
        """See `Raw.device`."""
        with self._lock, self._streams.device:
            made = self._copied(stream_of(stream))
            if self._lent:
                self._blocks.readers.append(made.computed)
            else:  # the memory that was copied goes back in the main stream's order
                with ONE_AT_A_TIME:  # that stream may be capturing
                    self._streams.main.wait_event(made.computed)
        return {**_views(self._layout, made.result), **_views(self._lazy_layout, made.lazy)}


def _views(layout: Layout, block: Any) -> dict[str, Any]:
    import cupy

    return layout.views(cupy.ndarray(layout.nbytes, np.uint8, block)) if layout.fields else {}
