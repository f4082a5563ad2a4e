"""A plan's steps on a GPU, to be bound to the memory of each place of the ring."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from trtpatch.engines import DeviceEngine, Engine, HostEngine
from trtpatch.executors.begin import Piece
from trtpatch.executors.capture import Call
from trtpatch.executors.kernels import Kernels
from trtpatch.executors.ring import Slot
from trtpatch.plan import EngineStep, PatchStep, Plan


class Steps:
    """The steps, with their kernels loaded; they run on CuPy's current stream."""

    def __init__(self, plan: Plan, engine: Engine | None, kernels: Kernels, cleared: Any) -> None:
        """Compile and load.

        Args:
            plan: with the steps.
            engine: for the engine's step.
            kernels: loads them on the GPU.
            cleared: the region that is zeroed as a whole; an array of bytes.

        Raises:
            CompileError: a kernel does not compile, or does not fit the GPU.
        """
        self._plan = plan
        self._engine = engine
        self._cleared = cleared
        self._begin = kernels.load_begin()
        self._kernels = [
            kernels.load(step) if isinstance(step, PatchStep) else None for step in plan.steps
        ]

    def bind(self, slot: Slot) -> list[Call]:
        """The steps on a place's memory, after what begins a walk."""
        calls = [Call("begin", self._begin(self._pieces(slot)))]
        for step, bind in zip(self._plan.steps, self._kernels, strict=True):
            if isinstance(step, EngineStep):
                calls.append(self._engine_call(step, slot))
            else:
                assert bind is not None
                calls.append(Call(step.name, bind(lambda name: slot.arrays[name].data.ptr)))
        return calls

    def _pieces(self, slot: Slot) -> list[Piece]:
        """The frame table, and what is to be zeroed."""
        cleared = (b for b in self._plan.buffers.values() if b.cleared and b.region != "cleared")
        return [
            Piece(slot.table, self._plan.region_bytes("frame"), slot.address),
            Piece(self._cleared.data.ptr, self._plan.region_bytes("cleared")),
            *(Piece(slot.arrays[b.name].data.ptr, b.nbytes) for b in cleared),
        ]

    def _engine_call(self, step: EngineStep, slot: Slot) -> Call:
        engine = self._engine
        assert engine is not None
        if engine.on_device:
            bound = {**step.inputs, **step.outputs}
            addresses = {name: slot.arrays[buffer].data.ptr for name, buffer in bound.items()}
            return Call(step.name, partial(_enqueue, engine, addresses), engine.obstacle)
        obstacle = f"{engine.info.flavour} runs on the host"
        return Call(step.name, lambda: _run_on_host(engine, step, slot), obstacle)


def _enqueue(engine: DeviceEngine, addresses: Mapping[str, int]) -> None:
    from cupy.cuda import get_current_stream

    engine.enqueue(addresses, get_current_stream().ptr)


def _run_on_host(engine: HostEngine, step: EngineStep, slot: Slot) -> None:
    from cupy.cuda import get_current_stream

    inputs = step.inputs if engine.needs_inputs else {}
    outputs = engine.run({name: slot.arrays[buffer].get() for name, buffer in inputs.items()})
    for name, buffer in step.outputs.items():
        slot.arrays[buffer].set(np.ascontiguousarray(outputs[name]))
    get_current_stream().synchronize()
