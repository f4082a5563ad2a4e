"""The `gpu` executor: kernels and engine on one stream, replayed as one CUDA Graph.

Each batch has a place of its own, and each place its own graph. Pictures in host memory are copied
in on a stream of their own, so that they overlap with the batch before; then one launch of the
place's graph copies the frame table and walks the plan. The results lie in the place until the next
batch needs it; those that are asked for come back on a third stream. The host waits for nothing in
between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from trtpatch.compiler.compile import Compile
from trtpatch.engines import Engine
from trtpatch.engines.device import find_gpu
from trtpatch.errors import EngineError, InputError
from trtpatch.executors import Timings
from trtpatch.executors.capture import Call, GraphMode, capture_walk
from trtpatch.executors.download import Blocks, DeviceRaw, Layout, Streams
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.ring import COPY_THREADS, Slot, pinned
from trtpatch.executors.steps import COPY_IN, Steps
from trtpatch.frame import Frame
from trtpatch.plan import BATCH_REGIONS, REGIONS, Plan, Region

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
        """Compile the kernels, allocate every buffer, run the engine once, capture the graphs.

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

        self._several = count > 1
        self._plan = plan
        self._engine = engine
        self._graph = graph
        self._settings = {s.buffer: s.value for _, s in plan.settings}
        self._layouts = Layout.of(plan, "result"), Layout.of(plan, "lazy")
        self._device = cupy.cuda.Device(device)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            into, out = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
            self._streams = Streams(self._device, self._stream, into, out)
            self._written = cupy.cuda.Event(disable_timing=True)
            with self._stream:
                self._shared = self._zeros(
                    region for region in REGIONS if region not in BATCH_REGIONS
                )
                kernels = Kernels(self._device, compile_unit)
                self._steps = Steps(plan, engine, kernels, self._shared["cleared"], self._stream)
                self._warm = False
                self._copier = ThreadPoolExecutor(COPY_THREADS, "trtpatch-copy")
                self._slots = deque(self._make_slot() for _ in range(DEPTH))
        self.notes = self._slot.walk.notes

    @property
    def _slot(self) -> Slot:
        """The place of the batch that came last."""
        return self._slots[0]

    def _zeros(self, regions: Iterable[Region]) -> dict[str, Any]:
        import cupy

        sizes = {region: max(1, self._plan.region_bytes(region)) for region in REGIONS}
        try:
            return {region: cupy.zeros(sizes[region], np.uint8) for region in regions}
        except cupy.cuda.memory.OutOfMemoryError as error:
            parts = ", ".join(f"{region} {size / 2**20:.1f} MiB" for region, size in sizes.items())
            raise InputError(
                f"the GPU's memory does not suffice for this plan, which needs {parts}"
                f" ('trtpatch check --memory' lists every buffer): {error}"
            ) from None

    def _make_slot(self) -> Slot:
        own = self._zeros(BATCH_REGIONS)
        table = pinned(own["frame"].nbytes)
        table[...] = 0
        slot = Slot(
            table,
            self._plan.views({"frame": table}),
            self._plan.views({**self._shared, **own}),
            own["frame"].data,
            Blocks(own["result"].data, own["lazy"].data),
        )
        self._place(slot, [])
        calls, clear = self._steps.bind(slot)
        if not self._warm:
            self._warm_up(calls)
        slot.walk = capture_walk(calls, clear, self._stream, self._graph)
        return slot

    def _warm_up(self, calls: Sequence[Call]) -> None:
        """Run the engine once on nothing: it compiles and allocates on its first run."""
        if self._engine is not None and self._engine.on_device:
            for call in calls:
                call.run()
            self._stream.synchronize()
            self._engine.keep_compiled()
        self._warm = True

    def run(
        self, frames: Sequence[Frame], *, stream: int | None = None, timings: Timings | None = None
    ) -> DeviceRaw:
        """Run one batch; see `Executor.run`."""
        import cupy

        if self._several:
            self._refuse_elsewhere(frames)
        with self._device, self._stream:
            producers = self._wait_for_writers(frames, stream)
            before = self._mark(timings)
            self._slots.rotate(-1)
            slot = self._slot
            slot.vacate(self._stream)
            try:
                self._place(slot, frames)
                after = self._mark(timings)
                if timings is None:
                    slot.walk()
                else:
                    self.walk(timings)
            finally:
                slot.results.computed.record(self._stream)
            raw = DeviceRaw(slot.results, self._layouts, self._streams)
            slot.lend(raw)
            for producer in producers:
                producer.wait_event(slot.results.computed)
            if timings is not None:
                pictures = cupy.cuda.get_elapsed_time(before, after)
                timings[COPY_IN] = timings.get(COPY_IN, 0.0) + pictures
            return raw

    def _refuse_elsewhere(self, frames: Sequence[Frame]) -> None:
        from cupy.cuda import runtime

        for index, frame in enumerate(frames, start=1):
            if frame.on_device:
                place = runtime.pointerGetAttributes(frame.address).device
                if place != self._device.id:
                    raise InputError(
                        f"image {index} of {len(frames)}: it lies on GPU {place}, but this pipeline"
                        f" runs on GPU {self._device.id}. Copy it there first, or load the pipeline"
                        f" with 'device: {place}'"
                    )

    def _wait_for_writers(self, frames: Sequence[Frame], stream: int | None) -> list[Any]:
        """The streams on which pictures on the GPU are being written; the walk waits for them."""
        import cupy

        named = {f.stream if stream is None else stream for f in frames if f.on_device}
        streams = [cupy.cuda.ExternalStream(one) for one in named if one is not None]
        for one in streams:
            self._stream.wait_event(one.record(self._written))
        return streams

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """See `Executor.put_frames`."""
        with self._device, self._stream:
            self._stream.synchronize()
            self._slot.vacate(self._stream)
            self._place(self._slot, frames)

    def _place(self, slot: Slot, frames: Sequence[Frame]) -> None:
        slot.place(frames, self._settings, self._copier, self._streams)

    def walk(self, timings: Timings | None = None) -> None:
        """See `Executor.walk`. With `timings` the steps are launched one by one, not as a graph."""
        import cupy

        walk = self._slot.walk
        with self._device, self._stream:
            if timings is None:
                walk()
                return
            marks = [self._mark(timings)]
            for call in walk.calls:
                call.run()
                marks.append(self._mark(timings))
            self._stream.synchronize()
            for call, start, end in zip(walk.calls, marks, marks[1:], strict=False):
                timings[call.name] = cupy.cuda.get_elapsed_time(start, end)

    def _mark(self, timings: Timings | None) -> Any:
        return self._stream.record() if timings is not None else None

    def write(self, buffer: str, array: np.ndarray[Any, Any]) -> None:
        """See `Executor.write`."""
        if buffer in self._slot.views:
            self._slot.views[buffer][...] = array
            return
        target = self._slot.arrays[buffer]
        with self._device:
            target.set(np.ascontiguousarray(array, target.dtype), stream=self._stream)
            self._stream.synchronize()

    def read(self, buffer: str) -> np.ndarray[Any, Any]:
        """See `Executor.read`."""
        with self._device:
            array: np.ndarray[Any, Any] = self._slot.arrays[buffer].get(stream=self._stream)
        return array

    def set(self, buffer: str, value: float) -> None:
        """See `Executor.set`."""
        self._settings = {**self._settings, buffer: value}

    def reserve(self, depth: int) -> None:
        """See `Executor.reserve`."""
        with self._device, self._stream:
            while len(self._slots) < depth:
                self._slots.append(self._make_slot())

    def wait(self) -> None:
        """See `Executor.wait`."""
        with self._device:
            for stream in (self._streams.main, self._streams.into, self._streams.out):
                stream.synchronize()

    def close(self) -> None:
        """See `Executor.close`; waits for what is under way."""
        self.wait()
        self._copier.shutdown()
        for slot in self._slots:
            del slot.walk  # whose steps may hold the place, and so its memory
        self._slots.clear()
        del self._steps
        self._shared.clear()


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
