"""As `cupy.cuda`."""

from __future__ import annotations

from typing import Any, ClassVar

from cupy.cuda import driver, function, memory, runtime
from cupy.cuda.memory import MemoryPointer, alloc, alloc_pinned_memory
from cupy.streams import Event, ExternalStream, Stream, get_current_stream, run_all

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "MemoryPointer",
    "Stream",
    "alloc",
    "alloc_pinned_memory",
    "driver",
    "function",
    "get_current_stream",
    "get_elapsed_time",
    "memory",
    "runtime",
]


class Device:
    """As CuPy's."""

    compute_capability = "90"
    attributes: ClassVar = {
        "MaxRegistersPerBlock": 65536,
        "MaxSharedMemoryPerBlockOptin": 227 * 1024,
    }
    mem_info = (0, 0)

    def __init__(self, device: int = 0) -> None:
        self.id = device

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        run_all()


def get_elapsed_time(start: Any, end: Any) -> float:
    """Milliseconds that mean nothing."""
    return 0.001
