"""The `host` executor: each patch by its own kernels, built by this machine's C++ compiler."""

from __future__ import annotations

from collections.abc import Callable

from trtpatch.compiler.cubins import Cubins
from trtpatch.engines import HostEngine
from trtpatch.executors.host_unit import HostUnit
from trtpatch.executors.walker import HostWalker
from trtpatch.plan import PatchStep, Plan
from trtpatch.unit import make_unit, pack


class HostExecutor(HostWalker):
    """Walks a plan with the text that NVRTC gets, on the CPU.

    Attributes:
        seed: 0 takes blocks and threads in order; any other number shuffles them, from the next
            walk on.
    """

    name = "host"

    def __init__(
        self, plan: Plan, engine: HostEngine | None, *, cubins: Cubins | None = None, seed: int = 0
    ) -> None:
        """Compile the kernels, or take them from the cache, and allocate every buffer.

        Args:
            plan: what to walk.
            engine: for the plan's engine step.
            cubins: the cache.
            seed: see the attribute.

        Raises:
            CompileError: a kernel does not compile, or uses what the host cannot do.
        """
        self._cubins = cubins or Cubins()
        self.seed = seed
        super().__init__(plan, engine)

    def bind_patch(self, step: PatchStep) -> Callable[[], None]:
        """The patch's launches, bound to the plan's arrays."""
        unit = make_unit(step)
        kernels = HostUnit.build(unit, self._cubins)
        args = pack(unit, step, lambda name: self.arrays[name].ctypes.data)

        def run() -> None:
            for launch in step.launches:
                kernels.launch(launch, args, seed=self.seed)

        return run
