"""The `gpu` executor: kernels and engine on one stream, replayed as one CUDA Graph.

Each batch has a place of its own, and each place its own graph. Pictures in host memory are copied
in on a stream of their own, so that they overlap with the batch before; then one launch of the
place's graph brings the frame table and walks the plan. The results lie in the place until the next
batch needs it; those that are asked for come back on a third stream. The host waits for nothing in
between.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from trtpatch.compiler.compile import Compile
from trtpatch.engines import Engine
from trtpatch.engines.device import find_gpu
from trtpatch.errors import EngineError, InputError
from trtpatch.executors import Timings, add_time
from trtpatch.executors.capture import Call, GraphMode, capture_walk
from trtpatch.executors.device_results import DeviceRaw, Layout
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.memory import Blocks, Streams, enough_memory, pinned
from trtpatch.executors.ring import Slot
from trtpatch.executors.steps import Steps
from trtpatch.extras import install
from trtpatch.frame import Frame
from trtpatch.plan import ALIGNMENT, BATCH_REGIONS, REGIONS, Plan, Region

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

        self._runtime = cupy.cuda.runtime
        self._plan = plan
        self._engine = engine
        self._graph = graph
        self._settings = {s.buffer: s.value for _, s in plan.settings}
        self._layouts = Layout.of(plan, "result"), Layout.of(plan, "lazy")
        self._device = cupy.cuda.Device(device)
        self._several = count > 1
        # Where there is but one GPU, it is current on every thread.
        self._scope: AbstractContextManager[Any] = self._device if count > 1 else nullcontext()
        self._streams = Streams.make(self._device)
        self._stream = self._streams.main
        # Memory goes back when nothing needs it any more, also where nobody closes.
        weakref.finalize(self, self._streams.synchronize)
        with self._device:
            self._written = cupy.cuda.Event(disable_timing=True)
            with self._stream:
                self._shared = self._zeros(
                    region for region in REGIONS if region not in BATCH_REGIONS
                )
                kernels = Kernels(self._device, compile_unit)
                self._steps = Steps(plan, engine, kernels, self._shared["cleared"])
                self._warm = False
                self._slots = deque(self._make_slot() for _ in range(DEPTH))
        self.notes = self._slot.walk.notes

    @property
    def _slot(self) -> Slot:
        """The place of the batch that came last."""
        return self._slots[0]

    def _zeros(self, regions: Iterable[Region]) -> dict[str, Any]:
        import cupy

        sizes = {r: _rounded(max(1, self._plan.region_bytes(r))) for r in REGIONS}
        parts = ", ".join(f"{region} {size / 2**20:.1f} MiB" for region, size in sizes.items())
        with enough_memory(f"this plan, {parts} ('trtpatch check --memory' lists every buffer)"):
            return {region: cupy.zeros(sizes[region], np.uint8) for region in regions}

    def _make_slot(self) -> Slot:
        own = self._zeros(BATCH_REGIONS)
        table = pinned(own["frame"].nbytes)
        table[...] = 0
        slot = Slot(
            table,
            self._plan.views({"frame": table}),
            self._plan.views({**self._shared, **own}),
            own["frame"].data.ptr,
            Blocks(own["result"].data, own["lazy"].data),
        )
        self._place(slot, [])
        calls = self._steps.bind(slot)
        if not self._warm:
            self._warm_up(calls)
        slot.walk = capture_walk(calls, self._stream, self._graph)
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
        if self._several:
            self._refuse_elsewhere(frames)
        with self._scope:
            writers = self._wait_for_writers(frames, stream)
            before = self._mark(timings)
            self._slots.rotate(-1)
            slot = self._slot
            slot.vacate(self._stream)
            computed = slot.results.computed
            try:
                self._place(slot, frames)
                after = self._mark(timings)
                self._walk(timings)
            finally:  # what has been launched reads the pictures, whatever happened then
                computed.record(self._stream)
                for writer in writers:
                    self._runtime.streamWaitEvent(writer, computed.ptr)
            raw = DeviceRaw(slot.results, self._layouts, self._streams)
            slot.lend(raw)
            if timings is not None:
                add_time(timings, "copy in", self._elapsed(before, after))
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

    def _wait_for_writers(self, frames: Sequence[Frame], stream: int | None) -> set[int]:
        """The streams on which pictures on the GPU are being written; the walk waits for them."""
        named = {frame.stream if stream is None else stream for frame in frames if frame.on_device}
        writers = {handle for handle in named if handle is not None}
        for handle in writers:
            self._runtime.eventRecord(self._written.ptr, handle)
            self._runtime.streamWaitEvent(self._stream.ptr, self._written.ptr)
        return writers

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """See `Executor.put_frames`."""
        with self._device, self._stream:
            self._stream.synchronize()
            self._slot.vacate(self._stream)
            self._place(self._slot, frames)

    def _place(self, slot: Slot, frames: Sequence[Frame]) -> None:
        slot.place(frames, self._settings, self._streams)

    def walk(self, timings: Timings | None = None) -> None:
        """See `Executor.walk`."""
        with self._scope:
            self._walk(timings)
            self._slot.results.computed.record(self._stream)

    def _walk(self, timings: Timings | None) -> None:
        """Put a walk on the stream; with `timings` step by step, not as a graph."""
        walk = self._slot.walk
        if timings is None:
            walk()
            return
        with self._device, self._stream:
            marks = [self._mark(timings)]
            for call in walk.calls:
                call.run()
                marks.append(self._mark(timings))
            self._stream.synchronize()
        for call, start, end in zip(walk.calls, marks, marks[1:], strict=False):
            add_time(timings, call.name, self._elapsed(start, end))

    def _mark(self, timings: Timings | None) -> Any:
        return self._stream.record() if timings is not None else None

    @staticmethod
    def _elapsed(start: Any, end: Any) -> float:
        from cupy.cuda import get_elapsed_time

        return float(get_elapsed_time(start, end))

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
            self._slots += [self._make_slot() for _ in range(depth - len(self._slots))]

    def wait(self) -> None:
        """See `Executor.wait`."""
        self._streams.synchronize()

    def close(self) -> None:
        """See `Executor.close`; waits for what is under way, and results that are held move out."""
        with self._device:
            for slot in self._slots:
                slot.vacate(self._stream)
        self.wait()
        for slot in self._slots:
            del slot.walk  # whose steps may hold the place, and so its memory
        self._slots.clear()
        del self._steps
        self._shared.clear()


def _rounded(size: int) -> int:
    """Bytes up to the next start of a buffer, so that whole words may be written to the last."""
    return -(-size // ALIGNMENT) * ALIGNMENT


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
            f"executor 'gpu' needs CuPy: {install('cu13')}; for CUDA 12, {install('cu12')}."
            f" {type(error).__name__}: {error}"
        ) from None
    return int(cupy.cuda.runtime.getDeviceCount())
