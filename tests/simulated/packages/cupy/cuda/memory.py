"""Memory of the simulated GPU, which is host memory that nothing may be read from at once.

As CuPy's pools do, they give freed memory again at once, to whoever asks for as much on the same
stream.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from cupy.streams import Stream, get_current_stream

_UNIT = 512
_free: dict[tuple[object, int], list[np.ndarray]] = {}
PINNED: dict[int, int] = {}
"""Address to bytes."""


class OutOfMemoryError(MemoryError):
    """Never raised."""


class MemoryPointer:
    """As CuPy's."""

    def __init__(self, block: np.ndarray, offset: int = 0) -> None:
        self._block = block
        self._offset = offset
        self.ptr: int = block.ctypes.data + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self._block, self._offset + offset)

    def memset_async(self, value: int, size: int, stream: Stream | None = None) -> None:
        target = bytes_at(self.ptr, size)
        (stream or get_current_stream()).queue.put(lambda: target.fill(value))


def alloc(size: int) -> MemoryPointer:
    return MemoryPointer(_take(get_current_stream().ptr, size))


def alloc_pinned_memory(size: int) -> Any:
    block = _take("pinned", size)
    memory = type("PinnedMemoryPointer", (ctypes.c_ubyte * block.size,), {}).from_buffer(block)
    memory.ptr = block.ctypes.data
    PINNED[memory.ptr] = block.size
    weakref.finalize(memory, PINNED.pop, memory.ptr, None)
    return memory


def bytes_at(address: int, size: int) -> np.ndarray[Any, Any]:
    """Host memory as an array, wherever it comes from."""
    return np.frombuffer((ctypes.c_ubyte * size).from_address(address), np.uint8)


class _Block(np.ndarray):
    """An array that a weak reference can be made to."""


def _take(pool: object, size: int) -> np.ndarray[Any, Any]:
    units = -(-max(1, size) // _UNIT)
    free = _free.setdefault((pool, units), [])
    memory = free.pop() if free else np.full((units + 1) * _UNIT, 0xAB, np.uint8)
    start = -memory.ctypes.data % _UNIT
    block = memory[start : start + units * _UNIT].view(_Block)
    weakref.finalize(block, free.append, memory)
    return block
