"""A stand-in for CuPy on a machine without a GPU: as much of it as trtpatch uses.

Memory is host memory, kernels are those of executor `host`, and streams are queues: see `streams`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy import float32, int32, uint8

from cupy import cuda
from cupy.cuda.memory import MemoryPointer, alloc, bytes_at

__all__ = ["asarray", "cuda", "empty", "float32", "int32", "ndarray", "uint8", "zeros"]


class ndarray:
    """As CuPy's."""

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Any = None,
    ) -> None:
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize
        self.data = memptr or alloc(self.nbytes)
        self.strides = strides or np.empty(self.shape, self.dtype).strides

    @property
    def _host(self) -> np.ndarray[Any, Any]:
        steps = zip(self.shape, self.strides, strict=True)
        size = sum((n - 1) * step for n, step in steps) + self.dtype.itemsize if self.size else 0
        return np.ndarray(self.shape, self.dtype, bytes_at(self.data.ptr, size), 0, self.strides)

    def _view(self, host: np.ndarray[Any, Any]) -> ndarray:
        start = self.data + (host.ctypes.data - self.data.ptr)
        return ndarray(host.shape, host.dtype, start, host.strides)

    def __getitem__(self, key: Any) -> ndarray:
        return self._view(self._host[(*(key if isinstance(key, tuple) else (key,)), ...)])

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self[key]._host
        source = value._host if isinstance(value, ndarray) else np.asarray(value)
        cuda.get_current_stream().queue.put(lambda: np.copyto(target, source))

    def __add__(self, other: float) -> ndarray:
        made, source = ndarray(self.shape, self.dtype), self._host
        target = made._host
        cuda.get_current_stream().queue.put(lambda: np.copyto(target, source + other))
        return made

    def __int__(self) -> int:
        return int(self.get())

    def view(self, dtype: Any) -> ndarray:
        return self._view(self._host.view(dtype))

    def reshape(self, *shape: Any) -> ndarray:
        return self._view(self._host.reshape(*shape))

    def get(self, stream: Any = None) -> np.ndarray[Any, Any]:
        (stream or cuda.get_current_stream()).synchronize()
        return self._host.copy()

    def set(self, array: np.ndarray[Any, Any], stream: Any = None) -> None:
        target, source = self._host, array.copy()
        queue = (stream or cuda.get_current_stream()).queue
        queue.put(lambda: np.copyto(target, source))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": self.strides,
            "data": (self.data.ptr, False),
            "version": 3,
            "stream": cuda.get_current_stream().ptr,
        }


def empty(shape: Any, dtype: Any = float) -> ndarray:
    return ndarray(shape, dtype)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    array = ndarray(shape, dtype)
    array.data.memset_async(0, array.nbytes)
    return array


def asarray(values: Any) -> ndarray:
    host = np.ascontiguousarray(values)
    array = ndarray(host.shape, host.dtype)
    array.set(host)
    return array


def unpackbits(array: ndarray, bitorder: Any = "big") -> ndarray:
    return asarray(np.unpackbits(array.get(), bitorder=bitorder))


def get_default_memory_pool() -> SimpleNamespace:
    return SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0)
