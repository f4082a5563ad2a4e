"""Who walks a plan: `cpu` (NumPy references), `host` (the kernels in C++), `gpu` (CuPy).

An executor is made once for a plan and an engine, and run once a batch. It owns its buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from trtpatch.engines import Engine
from trtpatch.errors import CaptureError, EngineError, InputError
from trtpatch.frame import Frame
from trtpatch.plan import Plan

if TYPE_CHECKING:
    from trtpatch.compiler.bundle import Bundle
    from trtpatch.compiler.compile import Compile
    from trtpatch.compiler.cubins import Cubins

Arrays = Mapping[str, np.ndarray[Any, Any]]
Timings = dict[str, float]


class Raw(Protocol):
    """The tensors of a plan's results, for one batch."""

    def prefetch(self) -> None:
        """Start the copy to the host, without waiting."""

    def host(self) -> Arrays:
        """The tensors as NumPy arrays, under the names of their fields; waits for them.

        Those that the ports call lazy may be left out.
        """

    def fetch(self, field: str, image: int, count: int) -> np.ndarray[Any, Any]:
        """The first `count` elements of an image's row of a lazy tensor; waits for them."""

    def device(self, stream: int | None) -> Mapping[str, Any]:
        """All tensors as CuPy arrays, copied on the caller's stream; does not wait.

        Args:
            stream: CUDA stream that waits for the batch; CuPy's current one where None.

        Raises:
            InputError: the executor has no GPU.
        """


class Executor(Protocol):
    """Walks a plan.

    Attributes:
        name: `gpu`, `host` or `cpu`.
        notes: what the user is told at load.
    """

    name: str
    notes: tuple[str, ...]

    def run(
        self, frames: Sequence[Frame], *, stream: int | None = None, timings: Timings | None = None
    ) -> Raw:
        """Run one batch.

        Args:
            frames: at most the plan's batch.
            stream: the caller's CUDA stream on which device frames are being written; their own
                where None.
            timings: where given, milliseconds by step are added; this waits for every step.
        """

    def put_frames(self, frames: Sequence[Frame]) -> None:
        """Make a batch of pictures the content of the port `frame`."""

    def write(self, buffer: str, array: np.ndarray[Any, Any]) -> None:
        """Fill a buffer of the plan from host memory."""

    def read(self, buffer: str) -> np.ndarray[Any, Any]:
        """A copy of a buffer of the plan in host memory; waits for the walk."""

    def walk(self, timings: Timings | None = None) -> None:
        """Clear what the plan wants cleared and run its steps on what the buffers hold."""

    def set(self, buffer: str, value: float) -> None:
        """Change a runtime parameter, by the name of its buffer, from the next frame on."""

    def reserve(self, depth: int) -> None:
        """Have room for so many batches under way at once."""

    def wait(self) -> None:
        """Wait for the batches that are under way."""

    def close(self) -> None:
        """Give up all memory; the executor cannot run any more."""


def add_time(timings: Timings, name: str, milliseconds: float) -> None:
    """Add to what a step has taken so far."""
    timings[name] = timings.get(name, 0.0) + milliseconds


def choose_executor(name: str) -> str:
    """`gpu` or `cpu` for `auto`, by whether CuPy finds a GPU; any other name as it is.

    Raises:
        InputError: there is no such executor.
    """
    if name not in ("auto", "gpu", "cpu", "host"):
        raise InputError(f"executor: expected auto, gpu, cpu or host, found {name!r}")
    return name if name != "auto" else ("gpu" if gpu_found() else "cpu")


def gpu_found() -> bool:
    """Whether CuPy is installed and sees a GPU."""
    try:
        import cupy
    except ImportError:
        return False
    try:
        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def make_executor(
    name: str,
    plan: Plan,
    engine: Engine | None,
    *,
    device: int = 0,
    graph: Literal["auto", "required", "off"] = "auto",
    cubins: Cubins | None = None,
    bundle: Bundle | None = None,
) -> Executor:
    """The executor of that name, ready to run. A plan without an engine's step needs no engine.

    Args:
        name: `gpu`, `host` or `cpu`.
        plan: what to walk.
        engine: for the plan's engine step.
        device: which GPU, as CUDA numbers them.
        graph: how much of the walk is captured in CUDA Graphs.
        cubins: the cache of compiled kernels; the user's own when not given.
        bundle: where executor `gpu` has its kernels from instead.

    Raises:
        EngineError: the engine needs a GPU and the executor has none.
        CompileError: a kernel does not compile.
        CaptureError: `graph` is `required`, but not all can be captured.
    """
    if graph == "required" and name != "gpu":
        raise CaptureError(f"'graph: required', but executor {name!r} has no CUDA Graphs")
    if name == "gpu":
        from trtpatch.executors.gpu import GpuExecutor

        return GpuExecutor(
            plan, engine, device=device, graph=graph, compile_unit=_compile(cubins, bundle)
        )
    if engine is not None and engine.on_device:
        raise EngineError(f"{engine.info.path} runs on a GPU; executor {name!r} does not")
    if name == "host":
        from trtpatch.executors.host import HostExecutor

        return HostExecutor(plan, engine, cubins=cubins)
    from trtpatch.executors.cpu import CpuExecutor

    return CpuExecutor(plan, engine)


def compile_ahead(
    name: str, plan: Plan, *, device: int, cubins: Cubins, bundle: Bundle | None = None
) -> None:
    """Compile what a plan needs, so that `make_executor` with the same cache only loads it.

    Raises:
        CompileError: a kernel does not compile.
        VerifyError: a reference, which executor `cpu` runs, cannot be read.
    """
    if name == "gpu":
        from trtpatch.engines.device import find_gpu
        from trtpatch.executors.begin import begin_unit
        from trtpatch.unit import make_unit

        arch = find_gpu(device).arch
        for unit in (begin_unit(), *map(make_unit, plan.patch_steps)):
            _compile(cubins, bundle)(unit, arch=arch)
    elif name == "host":
        from trtpatch.executors.host_unit import HostUnit
        from trtpatch.unit import make_unit

        for step in plan.patch_steps:
            HostUnit.build(make_unit(step), cubins)
    else:
        from trtpatch.executors.cpu import load_reference

        for step in plan.patch_steps:
            load_reference(step.patch)


def _compile(cubins: Cubins | None, bundle: Bundle | None) -> Compile:
    from trtpatch.compiler.compile import cubin_for
    from trtpatch.compiler.cubins import Cubins

    return bundle.cubin_for if bundle else partial(cubin_for, cubins=cubins or Cubins())
