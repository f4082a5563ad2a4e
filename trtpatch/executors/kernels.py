"""Compiled kernels on one GPU, ready to launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trtpatch.compiler import cubin_for
from trtpatch.cubins import Cubins
from trtpatch.errors import CompileError
from trtpatch.plan import PatchStep
from trtpatch.unit import make_unit, pack

_DEFAULT_SHARED_BYTES = 48 * 1024


class Kernels:
    """Loads the kernels of steps on a device; a module belongs to the device it is loaded on."""

    def __init__(self, device: Any, cubins: Cubins) -> None:
        self._device = device
        self._cubins = cubins

    def bind(self, step: PatchStep, address: Callable[[str], int]) -> Callable[[], None]:
        """Compile and load a step.

        Args:
            step: the step.
            address: gives a buffer's address on the GPU by its name.

        Returns:
            A call that puts the step's launches on CuPy's current stream.

        Raises:
            CompileError: the kernel does not compile or wants more than the GPU has.
        """
        from cupy.cuda import function

        unit = make_unit(step)
        arch = f"sm_{self._device.compute_capability}"
        cubin = cubin_for(unit, arch=arch, cubins=self._cubins)
        module = function.Module()
        module.load(cubin.code)
        args = pack(unit, step, address)
        launches = []
        for launch in step.launches:
            kernel = module.get_function(launch.entry)
            if launch.shared_bytes > _DEFAULT_SHARED_BYTES:
                self._allow_shared(step, launch.entry, kernel, launch.shared_bytes)
            launches.append((kernel, launch.grid, launch.block, launch.shared_bytes))

        def run() -> None:
            for kernel, grid, block, shared in launches:
                kernel(grid, block, (args,), shared)

        return run

    def _allow_shared(self, step: PatchStep, entry: str, kernel: Any, size: int) -> None:
        from cupy_backends.cuda.api import driver

        most = self._device.attributes["MaxSharedMemoryPerBlockOptin"]
        if size > most:
            raise CompileError(
                f"{step.patch.label}: {entry} asks for {size} bytes of shared memory a block;"
                f" this GPU has {most}"
            )
        attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.funcSetAttribute(kernel.ptr, attribute, size)
