"""The `gpu` executor: kernels and engine on one stream, replayed as one CUDA Graph.

Per batch: the pictures are copied in on a stream of their own, so that they overlap with the batch
before; then the frame table, the walk and one copy of the results go on the main stream; results
that are asked for come back on a third. The host waits for nothing in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from trtpatch.compiler.compile import Compile
from trtpatch.engines import Engine, HostEngine
from trtpatch.engines.device import find_gpu
from trtpatch.errors import EngineError, InputError
from trtpatch.executors import Timings
from trtpatch.executors.capture import Call, Clear, GraphMode, capture_walk
from trtpatch.executors.download import DeviceRaw, Layout
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.ring import Ring, Slot, copy_in, pinned
from trtpatch.frame import Frame
from trtpatch.plan import REGIONS, EngineStep, PatchStep, Plan, Region

DEPTH = 3
"""Batches that may be under way at once, where nothing else is asked for."""


class GpuExecutor:
    """Walks a plan on one GPU.

    Attributes:
        notes: what the user is told at load, such as a step outside the graph.
    """

    name = "gpu"

    def __init__(
        self,
        plan: Plan,
        engine: Engine | None,
        *,
        device: int,
        graph: GraphMode = "auto",
        compile_unit: Compile,
    ) -> None:
        """Compile the kernels, allocate every buffer, run the engine once, capture the graph.

        Args:
            plan: what to walk.
            engine: for the plan's engine step.
            device: which GPU, as CUDA numbers them.
            graph: how much of the walk is to be captured.
            compile_unit: has the kernels.

        Raises:
            EngineError: there is no GPU, or no CuPy.
            InputError: there is no GPU of that number, or its memory does not suffice.
            CompileError: a kernel does not compile, or does not fit the GPU.
            CaptureError: `graph` is `required` and a step cannot be captured.
        """
        count = _count_gpus()
        if device >= count:
            raise InputError(f"device {device} is asked for, but {count} GPUs are here")
        import cupy

        self._plan = plan
        self._engine = engine
        self._device = cupy.cuda.Device(device)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._copy_stream = cupy.cuda.Stream(non_blocking=True)
            self._out_stream = cupy.cuda.Stream(non_blocking=True)
            with self._stream:
                self._allocate()
                steps = self._bind(Kernels(self._device, compile_unit))
                self._settings = {s.buffer: s.value for _, s in plan.settings}
                self._upload(self._ring.take(), [])
                self._warm_up(steps)
                self._walk = capture_walk(steps, self._clear(), self._stream, graph)
        self.notes = self._walk.notes

    def _allocate(self) -> None:
        import cupy

        sizes = {region: max(1, self._plan.region_bytes(region)) for region in REGIONS}
        try:
            self._regions: dict[str, Any] = {r: cupy.zeros(n, np.uint8) for r, n in sizes.items()}
        except cupy.cuda.memory.OutOfMemoryError as error:
            parts = ", ".join(f"{region} {size / 2**20:.1f} MiB" for region, size in sizes.items())
            raise InputError(
                f"the GPU's memory does not suffice for this plan, which needs {parts}"
                f" ('trtpatch check --memory' lists every buffer): {error}"
            ) from None
        self._arrays = self._plan.views(self._regions)
        self._layout = Layout.of(self._plan, "result")
        self._lazy_layout = Layout.of(self._plan, "lazy")
        self._table_bytes = sizes["frame"]
        self._frame_address = self._regions["frame"].data.ptr
        self._ring = Ring(self._make_slot, DEPTH)

    def _make_slot(self) -> Slot:
        table = pinned(self._table_bytes)
        table[...] = 0
        return Slot(table, self._plan.views({"frame": table}))

    def _bind(self, kernels: Kernels) -> list[Call]:
        return [
            self._engine_call(step)
            if isinstance(step, EngineStep)
            else Call(step.name, kernels.bind(step, lambda name: self._arrays[name].data.ptr))
            for step in self._plan.steps
        ]

    def _clear(self) -> Clear:
        cleared = {name: b for name, b in self._plan.buffers.items() if b.cleared}
        single = (self._arrays[name] for name, b in cleared.items() if b.region != "cleared")
        blocks = (self._regions["cleared"], *single)
        for index, step in enumerate(self._plan.steps):
            if isinstance(step, PatchStep) and any(
                name in cleared for tensor in step.tensors for name in tensor.buffers
            ):
                return Clear(blocks, index)
        return Clear(blocks, len(self._plan.steps))

    def _engine_call(self, step: EngineStep) -> Call:
        engine = self._engine
        assert engine is not None
        if engine.on_device:
            bound = {**step.inputs, **step.outputs}
            addresses = {name: self._arrays[buffer].data.ptr for name, buffer in bound.items()}
            run = partial(engine.enqueue, addresses, self._stream.ptr)
            return Call(step.name, run, engine.obstacle)
        obstacle = f"{engine.info.flavour} runs on the host"
        return Call(step.name, lambda: self._run_on_host(engine, step), obstacle)

    def _run_on_host(self, engine: HostEngine, step: EngineStep) -> None:
        inputs = step.inputs if engine.needs_inputs else {}
        outputs = engine.run(
            {name: self._arrays[buffer].get(stream=self._stream) for name, buffer in inputs.items()}
        )
        for name, buffer in step.outputs.items():
            self._arrays[buffer].set(np.ascontiguousarray(outputs[name]), stream=self._stream)
        self._stream.synchronize()

    def _warm_up(self, steps: Sequence[Call]) -> None:
        """Run the engine once on nothing: it compiles and allocates on its first run."""
        if self._engine is not None and self._engine.on_device:
            for step in steps:
                step.run()
            self._stream.synchronize()
            self._engine.keep_compiled()

    def run(
        self, frames: Sequence[Frame], *, stream: int | None = None, timings: Timings | None = None
    ) -> DeviceRaw:
        """Run one batch; see `Executor.run`."""
        import cupy

        with self._device, self._stream:
            producers = self._wait_for_writers(frames, stream)
            before = self._mark(timings)
            slot = self._ring.take()
            try:
                self._upload(slot, frames)
                after = self._mark(timings)
                if timings is None:
                    self._walk()
                else:
                    self.walk(timings)
            finally:
                slot.release(self._stream)
            raw = DeviceRaw(
                self._keep("result"),
                self._layout,
                lazy_block=self._keep("lazy") if self._lazy_layout.fields else None,
                lazy_layout=self._lazy_layout,
                out_stream=self._out_stream,
            )
            raw.computed.record(self._stream)
            for producer in producers:
                producer.wait_event(raw.computed)
            if timings is not None:
                timings["copy in"] = cupy.cuda.get_elapsed_time(before, after)
            return raw

    def _wait_for_writers(self, frames: Sequence[Frame], stream: int | None) -> list[Any]:
        """The streams on which pictures on the GPU are being written; the walk waits for them."""
        import cupy

        named = {f.stream if stream is None else stream for f in frames if f.on_device}
        streams = [cupy.cuda.ExternalStream(one) for one in named if one is not None]
        for one in streams:
            self._stream.wait_event(one.record())
        return streams

    def _keep(self, name: Region) -> Any:
        """Start a copy of a region to memory that later batches do not touch."""
        import cupy

        runtime = cupy.cuda.runtime
        region = self._regions[name]
        kept = cupy.cuda.alloc(region.nbytes)
        runtime.memcpyAsync(
            kept.ptr, region.data.ptr, region.nbytes, runtime.memcpyDeviceToDevice, self._stream.ptr
        )
        return kept

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """See `Executor.put_frames`."""
        with self._device, self._stream:
            self._stream.synchronize()  # walks read the pictures after their place is released here
            slot = self._ring.take()
            self._upload(slot, frames)
            slot.release(self._stream)

    def _upload(self, slot: Slot, frames: Sequence[Frame]) -> None:
        slot.place(frames, self._ring.copier, self._copy_stream, self._stream)
        for buffer, value in self._settings.items():
            slot.views[buffer][0] = value
        copy_in(self._frame_address, slot.address, self._table_bytes, self._stream)

    def walk(self, timings: Timings | None = None) -> None:
        """See `Executor.walk`. With `timings` the steps are launched one by one, not as a graph."""
        import cupy

        with self._device, self._stream:
            if timings is None:
                self._walk()
                return
            marks = [self._mark(timings)]
            for call in self._walk.calls:
                call.run()
                marks.append(self._mark(timings))
            self._stream.synchronize()
            for call, start, end in zip(self._walk.calls, marks, marks[1:], strict=False):
                timings[call.name] = cupy.cuda.get_elapsed_time(start, end)

    def _mark(self, timings: Timings | None) -> Any:
        return self._stream.record() if timings is not None else None

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

    def set(self, buffer: str, value: float) -> None:
        """See `Executor.set`."""
        self._settings[buffer] = value

    def reserve(self, depth: int) -> None:
        """See `Executor.reserve`."""
        with self._device:
            self._ring.at_least(depth)

    def wait(self) -> None:
        """See `Executor.wait`."""
        with self._device:
            self._stream.synchronize()
            self._copy_stream.synchronize()
            self._out_stream.synchronize()

    def close(self) -> None:
        """See `Executor.close`; waits for what is under way."""
        self.wait()
        self._ring.close()
        del self._walk
        self._arrays.clear()
        self._regions.clear()


def _count_gpus() -> int:
    """How many GPUs CuPy sees.

    Raises:
        EngineError: there is none, or no CuPy.
    """
    find_gpu()
    try:
        import cupy
    except ImportError as error:
        raise EngineError(
            "executor 'gpu' needs CuPy: pip install 'trtpatch[cu13]' (or cu12, as the driver"
            f" allows). {type(error).__name__}: {error}"
        ) from None
    return int(cupy.cuda.runtime.getDeviceCount())
