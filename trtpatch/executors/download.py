"""A batch's results in GPU memory of their own, and their way back to the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trtpatch.executors import Arrays
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
        """A typed array over each field of a block of bytes."""
        return {field: buffer.view(block) for field, buffer in self.fields.items()}


class DeviceRaw:
    """See `Raw`. The memory is the caller's: later batches do not touch it.

    Attributes:
        computed: the event after which the results are there.
    """

    def __init__(
        self, block: Any, layout: Layout, *, lazy_block: Any, lazy_layout: Layout, out_stream: Any
    ) -> None:
        """Take GPU memory that is filled once the event `computed` has passed."""
        import cupy

        # Here, since an event belongs to the GPU that is current where it is made.
        self.computed = cupy.cuda.Event(disable_timing=True)
        self._downloaded = cupy.cuda.Event(disable_timing=True)
        self._block = block
        self._layout = layout
        self._lazy_block = lazy_block
        self._lazy_layout = lazy_layout
        self._stream = out_stream
        self._pinned: Any = None
        self._host: Arrays | None = None

    def prefetch(self) -> None:
        """See `Raw.prefetch`."""
        import cupy

        if self._pinned is None and self._host is None:
            size = self._layout.nbytes
            pinned = cupy.cuda.alloc_pinned_memory(size)
            self._stream.wait_event(self.computed)
            runtime = cupy.cuda.runtime
            runtime.memcpyAsync(
                pinned.ptr,
                self._block.ptr,
                size,
                runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )
            self._downloaded.record(self._stream)
            self._pinned = pinned

    def host(self) -> Arrays:
        """See `Raw.host`."""
        if self._host is None:
            self.prefetch()
            self._downloaded.synchronize()
            pinned = np.frombuffer(self._pinned, np.uint8, self._layout.nbytes)
            self._host = self._layout.views(pinned.copy())
            self._pinned = None
        return self._host

    def fetch(self, field: str, image: int, count: int) -> np.ndarray[Any, Any]:
        """See `Raw.fetch`."""
        self._stream.wait_event(self.computed)
        row = _views(self._lazy_layout, self._lazy_block)[field][image, :count]
        array: np.ndarray[Any, Any] = row.get(stream=self._stream)
        return array

    def device(self, stream: int | None) -> Mapping[str, Any]:
        """See `Raw.device`."""
        import cupy

        own = cupy.cuda.get_current_stream()
        waiting = own if stream is None else cupy.cuda.ExternalStream(stream)
        waiting.wait_event(self.computed)
        return {
            **_views(self._layout, self._block),
            **_views(self._lazy_layout, self._lazy_block),
        }


def _views(layout: Layout, block: Any) -> dict[str, Any]:
    import cupy

    return layout.views(cupy.ndarray(layout.nbytes, np.uint8, block)) if layout.fields else {}
