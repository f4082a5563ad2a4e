"""What executors in host memory share: the buffers, the engine, and the order of things."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trtpatch.engines import HostEngine
from trtpatch.errors import InputError, MatchError
from trtpatch.executors import Arrays, Timings, add_time
from trtpatch.frame import Frame
from trtpatch.plan import ALIGNMENT, Buffer, EngineStep, PatchStep, Plan, Step
from trtpatch.spec.ports import PORTS

_Guards = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


class HostRaw:
    """A batch's results in host memory."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def prefetch(self) -> None:
        """See `Raw.prefetch`; they are here."""

    def host(self) -> Arrays:
        """See `Raw.host`."""
        return self._arrays

    def fetch(self, field: str, image: int, count: int) -> np.ndarray[Any, Any]:
        """See `Raw.fetch`."""
        row: np.ndarray[Any, Any] = self._arrays[field][image, :count]
        return row

    def device(self, stream: int | None) -> Mapping[str, Any]:
        """Not to be had: these results never were on a GPU."""
        raise InputError("results are in host memory; only executor 'gpu' keeps them on the GPU")


class HostWalker:
    """Walks a plan in host memory; a subclass says how a patch is called.

    Attributes:
        arrays: by the buffer's name.
        guards: the bytes before and behind each of them, which nothing should touch.
    """

    name = ""
    notes: tuple[str, ...] = ()

    def __init__(self, plan: Plan, engine: HostEngine | None) -> None:
        self.plan = plan
        self.engine = engine
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.guards: dict[str, _Guards] = {}
        for name, buffer in plan.buffers.items():
            self.arrays[name], self.guards[name] = _allocate(buffer)
        self.frames: Sequence[Frame] = ()
        for _, setting in plan.settings:
            self.arrays[setting.buffer][0] = setting.value
        self._calls = [(step, self._bind(step)) for step in plan.steps]

    def _bind(self, step: Step) -> Callable[[], None]:
        if isinstance(step, EngineStep):
            assert self.engine is not None
            engine = self.engine
            return lambda: run_engine(engine, step, self.arrays)
        return self.bind_patch(step)

    def bind_patch(self, step: PatchStep) -> Callable[[], None]:
        """Prepare a patch step; the call that is returned runs it on `arrays`."""
        raise NotImplementedError

    def run(
        self, frames: Sequence[Frame], *, stream: int | None = None, timings: Timings | None = None
    ) -> HostRaw:
        """Run one batch; see `Executor.run`. `stream` plays no part here."""
        self.put_frames(frames)
        self.walk(timings)
        return HostRaw(self._results())

    def _results(self) -> Arrays:
        """A copy of the results; of a lazy tensor, only as much of a row as some image uses."""
        arrays = {name: self.arrays[buffer] for name, buffer in self.plan.result_buffers.items()}
        for port in (PORTS[name] for name in self.plan.results):
            for field, tensor in port.fields():
                if tensor.used:
                    used = arrays[f"{port.name}_{tensor.used}"].max(initial=0)
                    arrays[field] = arrays[field][:, :used]
        return {name: array.copy() for name, array in arrays.items()}

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """See `Executor.put_frames`."""
        if any(frame.on_device for frame in frames):
            raise InputError(f"the picture is in GPU memory, but executor {self.name!r} runs here")
        self.frames = frames
        put_frames(self.arrays, frames)

    def walk(self, timings: Timings | None = None) -> None:
        """See `Executor.walk`."""
        for buffer in self.plan.buffers.values():
            if buffer.cleared:
                self.arrays[buffer.name][...] = 0
        for step, call in self._calls:
            start = time.perf_counter()
            call()
            if timings is not None:
                add_time(timings, step.name, (time.perf_counter() - start) * 1e3)

    def write(self, buffer: str, array: np.ndarray[Any, Any]) -> None:
        """See `Executor.write`."""
        self.arrays[buffer][...] = array

    def read(self, buffer: str) -> np.ndarray[Any, Any]:
        """See `Executor.read`."""
        array: np.ndarray[Any, Any] = self.arrays[buffer].copy()
        return array

    def set(self, buffer: str, value: float) -> None:
        """See `Executor.set`."""
        self.arrays[buffer][0] = value

    def reserve(self, depth: int) -> None:
        """See `Executor.reserve`; one batch at a time runs here."""

    def wait(self) -> None:
        """See `Executor.wait`; none is under way here."""

    def close(self) -> None:
        """See `Executor.close`."""
        self._calls.clear()
        self.arrays.clear()
        self.guards.clear()


def _allocate(buffer: Buffer) -> tuple[np.ndarray[Any, Any], _Guards]:
    """Zeros, which begin as far past a multiple of `ALIGNMENT` bytes as on a GPU; and guards."""
    try:
        room = np.zeros(buffer.nbytes + 4 * ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:  # ValueError: more than any array may have
        raise MatchError(
            f"buffer {buffer.name} {buffer.dtype} {list(buffer.shape)} takes {buffer.nbytes} bytes,"
            f" for which there is no memory: {error}"
        ) from None
    start = ALIGNMENT + -room.ctypes.data % ALIGNMENT + buffer.offset % ALIGNMENT
    end = start + buffer.nbytes
    array = room[start:end].view(buffer.dtype).reshape(buffer.shape)
    return array, (room[start - ALIGNMENT : start], room[end : end + ALIGNMENT])


def put_frames(arrays: Mapping[str, np.ndarray[Any, Any]], frames: Sequence[Frame]) -> None:
    """Write the batch's pointers and sizes; unused places get zeros."""
    table, sizes = arrays["frame_images"], arrays["frame_sizes"]
    if len(frames) < len(table):
        table[len(frames) :] = 0
        sizes[len(frames) :] = 0
    for index, frame in enumerate(frames):
        table[index] = frame.address
        sizes[index] = frame.height, frame.width, frame.pitch


def run_engine(
    engine: HostEngine, step: EngineStep, arrays: Mapping[str, np.ndarray[Any, Any]]
) -> None:
    """Run a host engine between the plan's buffers."""
    outputs = engine.run({name: arrays[buffer] for name, buffer in step.inputs.items()})
    for name, buffer in step.outputs.items():
        arrays[buffer][...] = outputs[name]
