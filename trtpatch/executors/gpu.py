"""The `gpu` executor: kernels and engine on one stream of their own.

Per batch: one copy in of the pictures and one of the small frame table, the walk, one copy of the
results to memory that the caller keeps. The host waits for nothing in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trtpatch.cubins import Cubins
from trtpatch.engines import Engine, HostEngine
from trtpatch.errors import InputError
from trtpatch.executors import Arrays, Timings
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.staging import Staging
from trtpatch.executors.walker import put_frames
from trtpatch.frame import Frame
from trtpatch.plan import REGIONS, EngineStep, Plan
from trtpatch.spec.ports import PORTS


class DeviceRaw:
    """A batch's results in GPU memory of their own, and the event after which they are there."""

    def __init__(self, arrays: Mapping[str, Any], stream: Any) -> None:
        self._arrays = arrays
        self._stream = stream
        self._event = stream.record()

    def host(self) -> Arrays:
        """The tensors as NumPy arrays; waits for this batch alone."""
        self._event.synchronize()
        return {name: array.get(stream=self._stream) for name, array in self._arrays.items()}

    def device(self) -> Mapping[str, Any]:
        """The tensors as CuPy arrays; CuPy's current stream waits for them, the host does not."""
        import cupy

        cupy.cuda.get_current_stream().wait_event(self._event)
        return self._arrays


class GpuExecutor:
    """Walks a plan on one GPU."""

    name = "gpu"

    def __init__(
        self, plan: Plan, engine: Engine | None, *, device: int, cubins: Cubins | None = None
    ) -> None:
        """Compile the kernels and allocate every buffer.

        Raises:
            InputError: there is no GPU of that number.
            CompileError: a kernel does not compile, or does not fit the GPU.
        """
        import cupy

        count = cupy.cuda.runtime.getDeviceCount()
        if device >= count:
            raise InputError(f"device {device} is asked for, but {count} GPUs are here")
        self._plan = plan
        self._engine = engine
        self._device = cupy.cuda.Device(device)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            with self._stream:
                self._regions: dict[str, Any] = {
                    region: cupy.zeros(max(1, plan.region_bytes(region)), np.uint8)
                    for region in REGIONS
                }
            self._arrays = views(plan, self._regions)
            self._staging = Staging(self._regions["frame"])
            self._table = views(plan, {"frame": self._staging.table})
            for _, setting in plan.settings:
                self._table[setting.buffer][0] = setting.value
            kernels = Kernels(self._device, cubins or Cubins())
            self._walk: list[tuple[str, Callable[[], None]]] = [
                (step.name, self._engine_call(step))
                if isinstance(step, EngineStep)
                else (step.name, kernels.bind(step, lambda name: self._arrays[name].data.ptr))
                for step in plan.steps
            ]
            self._warm_up()

    def _warm_up(self) -> None:
        """Run the engine once on nothing: it compiles and allocates on its first run."""
        if self._engine is not None and self._engine.on_device:
            self.put_frames([])
            self.walk()
            self._stream.synchronize()
            self._engine.keep_compiled()

    def _engine_call(self, step: EngineStep) -> Callable[[], None]:
        engine = self._engine
        assert engine is not None
        if engine.on_device:
            bound = {**step.inputs, **step.outputs}
            addresses = {name: self._arrays[buffer].data.ptr for name, buffer in bound.items()}
            return lambda: engine.enqueue(addresses, self._stream.ptr)
        return lambda: self._run_on_host(engine, step)

    def _run_on_host(self, engine: HostEngine, step: EngineStep) -> None:
        inputs = step.inputs if engine.needs_inputs else {}
        outputs = engine.run(
            {name: self._arrays[buffer].get(stream=self._stream) for name, buffer in inputs.items()}
        )
        for name, buffer in step.outputs.items():
            self._arrays[buffer].set(np.ascontiguousarray(outputs[name]), stream=self._stream)
        self._stream.synchronize()

    def run(
        self, frames: Sequence[Frame], *, stream: int | None = None, timings: Timings | None = None
    ) -> DeviceRaw:
        """Run one batch; see `Executor.run`."""
        import cupy

        with self._device, self._stream:
            producer = None
            if stream is not None and any(frame.on_device for frame in frames):
                producer = cupy.cuda.ExternalStream(stream)
                self._stream.wait_event(producer.record())
            before = self._mark(timings)
            self.put_frames(frames)
            after = self._mark(timings)
            self.walk(timings)
            kept = {"result": self._regions["result"].copy()}
            raw = DeviceRaw(self._results(kept), self._stream)
            if producer is not None:
                producer.wait_event(self._stream.record())
            if timings is not None:
                timings["copy in"] = cupy.cuda.get_elapsed_time(before, after)
            return raw

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """See `Executor.put_frames`."""
        with self._device, self._stream:
            self._staging.wait()
            put_frames(self._table, self._staging.place(frames))
            self._staging.upload(self._stream)

    def walk(self, timings: Timings | None = None) -> None:
        """See `Executor.walk`."""
        import cupy

        with self._device, self._stream:
            marks = [self._mark(timings)]
            cleared = self._regions["cleared"]
            cleared.data.memset_async(0, cleared.nbytes, self._stream)
            for _, call in self._walk:
                call()
                marks.append(self._mark(timings))
            if timings is not None:
                self._stream.synchronize()
                for (name, _), start, end in zip(self._walk, marks, marks[1:], strict=False):
                    timings[name] = cupy.cuda.get_elapsed_time(start, end)

    def write(self, buffer: str, array: np.ndarray[Any, Any]) -> None:
        """See `Executor.write`."""
        target = self._arrays[buffer]
        with self._device:
            target.set(np.ascontiguousarray(array, target.dtype), stream=self._stream)
            self._stream.synchronize()

    def read(self, buffer: str) -> np.ndarray[Any, Any]:
        """See `Executor.read`."""
        with self._device:
            array: np.ndarray[Any, Any] = self._arrays[buffer].get(stream=self._stream)
        return array

    def _mark(self, timings: Timings | None) -> Any:
        return self._stream.record() if timings is not None else None

    def _results(self, regions: Mapping[str, Any]) -> dict[str, Any]:
        arrays = views(self._plan, regions)
        names = self._plan.result_buffers
        return {name: arrays[names[name]] for name, _ in PORTS[self._plan.result].fields()}

    def set(self, buffer: str, value: float) -> None:
        """See `Executor.set`."""
        self._staging.wait()
        self._table[buffer][0] = value

    def close(self) -> None:
        """See `Executor.close`; waits for what is under way."""
        with self._device:
            self._stream.synchronize()
            self._walk.clear()
            self._arrays.clear()
            self._regions.clear()
            self._staging.close()


def views(plan: Plan, regions: Mapping[str, Any]) -> dict[str, Any]:
    """A typed array over each buffer of the given regions, by the buffer's name."""
    return {
        name: regions[b.region][b.offset : b.offset + b.nbytes].view(b.dtype).reshape(b.shape)
        for name, b in plan.buffers.items()
        if b.region in regions
    }
