"""Memory and streams of one GPU, and copies between addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from trtpatch.errors import InputError


@dataclass(frozen=True)
class Streams:
    """The streams of one executor.

    Attributes:
        device: their GPU.
        main: on which walks run.
        into, out: on which pictures come and results go.
    """

    device: Any
    main: Any
    into: Any
    out: Any

    @classmethod
    def make(cls, device: Any) -> Streams:
        """New ones, which do not wait for the legacy stream."""
        import cupy

        with device:
            return cls(device, *(cupy.cuda.Stream(non_blocking=True) for _ in range(3)))

    def synchronize(self) -> None:
        """Wait for all that is on them."""
        with self.device:
            for stream in (self.main, self.into, self.out):
                stream.synchronize()


class Blocks:
    """GPU memory with the results of one batch.

    Attributes:
        result, lazy: where the two regions begin.
        computed: the event after which they are there.
        readers: events after which they are not read any more.
    """

    def __init__(self, result: Any, lazy: Any) -> None:
        """Take memory; the event belongs to the GPU that is current."""
        import cupy

        self.result = result
        self.lazy = lazy
        self.computed = cupy.cuda.Event(disable_timing=True)
        self.readers: list[Any] = []


def pinned(size: int) -> np.ndarray[Any, Any]:
    """Page-locked host memory as an array of bytes."""
    import cupy

    return np.frombuffer(cupy.cuda.alloc_pinned_memory(size), np.uint8, size)


def copy_bytes(target: int, source: int, size: int, stream: Any) -> None:
    """Start a copy between addresses, in whatever memory they are."""
    from cupy.cuda import runtime

    runtime.memcpyAsync(target, source, size, runtime.memcpyDefault, stream.ptr)


@contextmanager
def enough_memory(need: str) -> Iterator[None]:
    """Tell what there is too little memory for.

    Raises:
        InputError: CuPy found none.
    """
    from cupy.cuda.memory import OutOfMemoryError

    try:
        yield
    except OutOfMemoryError as error:
        raise InputError(f"the GPU's memory does not suffice for {need}: {error}") from None


class _Handle:
    """A stream by its handle, as the CUDA stream protocol has it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def stream_of(handle: int | None) -> Any:
    """A stream as CuPy's; its current one, on the current GPU, where there is no handle."""
    from cupy.cuda import ExternalStream, Stream, get_current_stream

    if handle is None:
        return get_current_stream()
    if hasattr(Stream, "from_external"):
        return Stream.from_external(_Handle(handle))
    return ExternalStream(handle)  # CuPy 13
