"""As `cupy.cuda.runtime`."""

from __future__ import annotations

from types import SimpleNamespace

from cupy.cuda.memory import PINNED, bytes_at
from cupy.streams import EVENTS, QUEUES, ExternalStream

memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = 1, 2, 3, 4
streamCaptureModeThreadLocal = 1


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


def getDeviceCount() -> int:
    return 1


def memcpyAsync(target: int, source: int, size: int, kind: int, stream: int) -> None:
    to, of = bytes_at(target, size), bytes_at(source, size)
    QUEUES[stream].put(lambda: to.__setitem__(..., of))


def pointerGetAttributes(address: int) -> SimpleNamespace:
    pinned = any(start <= address < start + size for start, size in PINNED.items())
    return SimpleNamespace(type=1 if pinned else 0, device=0)


def eventRecord(event: int, stream: int) -> None:
    EVENTS[event].record(ExternalStream(stream))


def streamWaitEvent(stream: int, event: int) -> None:
    ExternalStream(stream).wait_event(EVENTS[event])
