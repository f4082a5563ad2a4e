"""A plan's steps on a GPU, to be bound to the memory of each place of the ring."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trtpatch.engines import Engine, HostEngine
from trtpatch.executors.capture import Call, Clear
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.ring import Slot, copy_in
from trtpatch.plan import EngineStep, PatchStep, Plan

COPY_IN = "copy in"
"""What the copy of the frame table is called."""


class Steps:
    """The steps, with their kernels loaded."""

    def __init__(
        self, plan: Plan, engine: Engine | None, kernels: Kernels, cleared: Any, stream: Any
    ) -> None:
        """Compile and load.

        Args:
            plan: with the steps.
            engine: for the engine's step.
            kernels: loads them on the GPU.
            cleared: the region that is zeroed as a whole; an array of bytes.
            stream: on which everything runs.

        Raises:
            CompileError: a kernel does not compile, or does not fit the GPU.
        """
        self._plan = plan
        self._engine = engine
        self._cleared = cleared
        self._stream = stream
        self._kernels = [
            kernels.load(step) if isinstance(step, PatchStep) else None for step in plan.steps
        ]

    def bind(self, slot: Slot) -> tuple[list[Call], Clear]:
        """The steps on a place's memory, and what is to be zeroed before them."""
        calls = []
        if size := self._plan.region_bytes("frame"):
            copy = partial(copy_in, slot.table.ptr, slot.address, size, self._stream)
            calls.append(Call(COPY_IN, copy))
        first = len(calls)
        for step, bind in zip(self._plan.steps, self._kernels, strict=True):
            if isinstance(step, EngineStep):
                calls.append(self._engine_call(step, slot))
            else:
                assert bind is not None
                calls.append(Call(step.name, bind(lambda name: slot.arrays[name].data.ptr)))
        return calls, self._clear(slot, first)

    def _clear(self, slot: Slot, first: int) -> Clear:
        cleared = {name: b for name, b in self._plan.buffers.items() if b.cleared}
        single = (slot.arrays[name] for name, b in cleared.items() if b.region != "cleared")
        users = (
            index
            for index, step in enumerate(self._plan.steps, start=first)
            if isinstance(step, PatchStep)
            and any(name in cleared for tensor in step.tensors for name in tensor.buffers)
        )
        return Clear((self._cleared, *single), next(users, first + len(self._plan.steps)))

    def _engine_call(self, step: EngineStep, slot: Slot) -> Call:
        engine = self._engine
        assert engine is not None
        if engine.on_device:
            bound = {**step.inputs, **step.outputs}
            addresses = {name: slot.arrays[buffer].data.ptr for name, buffer in bound.items()}
            run = partial(engine.enqueue, addresses, self._stream.ptr)
            return Call(step.name, run, engine.obstacle)
        obstacle = f"{engine.info.flavour} runs on the host"
        return Call(step.name, lambda: self._run_on_host(engine, step, slot), obstacle)

    def _run_on_host(self, engine: HostEngine, step: EngineStep, slot: Slot) -> None:
        inputs = step.inputs if engine.needs_inputs else {}
        outputs = engine.run(
            {name: slot.arrays[buffer].get(stream=self._stream) for name, buffer in inputs.items()}
        )
        for name, buffer in step.outputs.items():
            slot.arrays[buffer].set(np.ascontiguousarray(outputs[name]), stream=self._stream)
        self._stream.synchronize()
