"""Compiled kernels on one GPU, ready to launch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trtpatch.compiler import nvrtc
from trtpatch.compiler.compile import Compile, Cubin
from trtpatch.errors import CompileError
from trtpatch.executors.begin import Piece, begin_unit, launches
from trtpatch.extras import install
from trtpatch.plan import PatchStep
from trtpatch.unit import Unit, make_unit, pack

Run = Callable[[], None]
"""Puts launches on CuPy's current stream."""
Bind = Callable[[Callable[[str], int]], Run]
"""From what gives a buffer's address on the GPU by its name."""
BindPieces = Callable[[Sequence[Piece]], Run]
"""From the memory to be filled."""

_DEFAULT_SHARED_BYTES = 48 * 1024
_UNUSABLE = ("INVALID_IMAGE", "INVALID_SOURCE", "NO_BINARY_FOR_GPU", "PTX")


class Kernels:
    """Loads the kernels of steps on a device; a module belongs to the device it is loaded on."""

    def __init__(self, device: Any, compile_unit: Compile) -> None:
        self._device = device
        self._compile = compile_unit

    def load(self, step: PatchStep) -> Bind:
        """Compile and load a step.

        Returns:
            What binds the step to buffers, as often as there are sets of them.

        Raises:
            CompileError: the kernel does not compile, wants more than the GPU has, or the driver
                does not load it.
        """
        unit = make_unit(step)
        cubin = self._cubin(unit)
        refuse_hungry_blocks(step, cubin, self._device.attributes["MaxRegistersPerBlock"])
        module = self._module(cubin)
        kernels = []
        for launch in step.launches:
            kernel = module.get_function(launch.entry)
            if launch.shared_bytes > _DEFAULT_SHARED_BYTES:
                self._allow_shared(step, launch.entry, kernel, launch.shared_bytes)
            kernels.append((kernel, launch.grid, launch.block, launch.shared_bytes))

        def bind(address: Callable[[str], int]) -> Run:
            args = pack(unit, step, address)

            def run() -> None:
                for kernel, grid, block, shared in kernels:
                    kernel(grid, block, (args,), shared)

            return run

        return bind

    def load_begin(self) -> BindPieces:
        """Compile and load what begins a walk; see `load`."""
        unit = begin_unit()
        kernel = self._module(self._cubin(unit)).get_function(unit.entries[0])

        def bind(pieces: Sequence[Piece]) -> Run:
            calls = list(launches(pieces))

            def run() -> None:
                for launch, args in calls:
                    kernel(launch.grid, launch.block, (args,))

            return run

        return bind

    def _cubin(self, unit: Unit) -> Cubin:
        return self._compile(unit, arch=f"sm_{self._device.compute_capability}")

    def _module(self, cubin: Cubin) -> Any:
        from cupy.cuda import driver, function, runtime

        module = function.Module()
        try:
            module.load(cubin.code)
        except driver.CUDADriverError as error:
            serves = runtime.driverGetVersion()
            raise CompileError(
                refusal(cubin, str(error), serves=serves, majors=nvrtc.cuda_majors())
            ) from None
        return module

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


def refusal(cubin: Cubin, error: str, *, serves: int, majors: Mapping[int, str]) -> str:
    """Why the driver does not load a cubin, and what to do.

    Args:
        cubin: what it was given.
        error: in its own words.
        serves: the newest CUDA that the driver serves, 12040 for 12.4.
        majors: from `cuda_majors`.
    """
    major, minor = serves // 1000, serves % 1000 // 10
    made = re.search(r"\d+", cubin.compiler)
    remedy = ""
    if made and int(made[0]) > major:
        remedy = f" Install a newer driver, or {install('cu13' if major >= 13 else 'cu12')}"
    elif any(word in error for word in _UNUSABLE):
        remedy = " Run 'trtpatch cache clear', or make the bundle again"
    loaded = " and ".join(f"{number} ({file})" for number, file in sorted(majors.items()))
    several = f" This process has loaded CUDA {loaded}." if len(majors) > 1 else ""
    return (
        f"patch {cubin.name}: the driver, which serves CUDA {major}.{minor}, does not load the "
        f"cubin that {cubin.compiler} made for {cubin.arch}: {error}.{several}{remedy}"
    )


def refuse_hungry_blocks(step: PatchStep, cubin: Cubin, most: int) -> None:
    """Refuse a launch whose block wants more registers than there are.

    Args:
        step: with the launches.
        cubin: its kernels.
        most: registers that a block can have; 65536 on every architecture so far.

    Raises:
        CompileError: a launch wants more; CUDA itself would say so only when it is launched.
    """
    registers = {kernel.name: kernel.registers for kernel in cubin.kernels}
    for launch in step.launches:
        each = -(-registers.get(launch.entry, 0) // 8) * 8  # given out in eights
        threads = -(-math.prod(launch.block) // 32) * 32  # and to whole warps
        if each * threads > most:
            raise CompileError(
                f"{step.patch.label}: {launch.entry} is launched in blocks of"
                f" {math.prod(launch.block)} threads and takes {registers[launch.entry]} registers"
                f" a thread on {cubin.arch}: {each * threads} of the {most} that a block can have."
                f" Write __launch_bounds__({math.prod(launch.block)}) before its name, or make the"
                " block smaller"
            )
