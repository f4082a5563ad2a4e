"""The GPU, asked through the driver alone: is there one, what is it, whose context is current.

TensorRT without a GPU may crash where it should refuse (seen: the lean runtime 11.4 dies of a
segmentation fault), so this is asked first. `libcuda` comes with the driver; nothing is installed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trtpatch.errors import EngineError

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*."""


@dataclass(frozen=True)
class Gpu:
    """A GPU of this machine.

    Attributes:
        ordinal: as CUDA numbers the GPUs that it shows to this process.
        name: such as `NVIDIA H200`.
        compute: compute capability, such as (9, 0).
        cuda: the newest CUDA version that the driver serves, such as `13.0`.
    """

    ordinal: int
    name: str
    compute: tuple[int, int]
    cuda: str

    @property
    def arch(self) -> str:
        """What cubins for it are made for, such as `sm_90`."""
        return f"sm_{self.compute[0]}{self.compute[1]}"


def find_gpu(ordinal: int = 0) -> Gpu:
    """Describe one GPU; makes no CUDA context.

    Raises:
        EngineError: there is no driver, no GPU, or none of that number.
    """
    driver = _driver()
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "counting the GPUs")
    if not 0 <= ordinal < count.value:
        raise EngineError(
            f"there is no GPU {ordinal}: CUDA shows {count.value} to this process, numbered from 0 "
            "(CUDA_VISIBLE_DEVICES hides others)"
        )
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGetName(name, len(name), ordinal), "naming the GPU")
    version = ctypes.c_int()
    _check(driver.cuDriverGetVersion(ctypes.byref(version)), "asking the driver's version")
    return Gpu(
        ordinal=ordinal,
        name=name.value.decode(errors="replace"),
        compute=(_attribute(driver, _MAJOR, ordinal), _attribute(driver, _MINOR, ordinal)),
        cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
    )


def gpu_for(path: Path, ordinal: int) -> Gpu:
    """The GPU that is to run an engine file, which the message names where there is none."""
    try:
        return find_gpu(ordinal)
    except EngineError as error:
        raise EngineError(f"{path}: needs a GPU, but {error}") from None


@contextmanager
def current(ordinal: int) -> Iterator[None]:
    """Make a GPU the calling thread's current one for a while, by its primary context.

    The primary context is what CuPy, PyTorch and TensorRT use. It is retained and never released:
    it lives as long as the process, and others may hold memory in it.
    """
    driver = _driver()
    context = ctypes.c_void_p()
    _check(
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal),
        f"taking the context of GPU {ordinal}",
    )
    _check(driver.cuCtxPushCurrent_v2(context), f"making GPU {ordinal} current")
    try:
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


def refuse_foreign_context() -> None:
    """Refuse a CUDA context that is no GPU's primary one.

    Raises:
        EngineError: the calling thread's current context was made by another library for itself.
    """
    driver = _driver()
    mine = ctypes.c_void_p()
    _check(driver.cuCtxGetCurrent(ctypes.byref(mine)), "asking for the current context")
    if not mine.value:
        return
    ordinal, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
    _check(driver.cuCtxGetDevice(ctypes.byref(ordinal)), "asking for the current GPU")
    _check(
        driver.cuDevicePrimaryCtxGetState(ordinal, ctypes.byref(flags), ctypes.byref(active)),
        "asking for the primary context",
    )
    primary = ctypes.c_void_p()
    if active.value:
        _check(
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(primary), ordinal),
            "asking for the primary context",
        )
    if primary.value != mine.value:
        loaded = "is loaded and" if "pycuda" in sys.modules else "for one"
        raise EngineError(
            f"another library made a CUDA context of its own on GPU {ordinal.value} and left it "
            f"current in this thread (PyCUDA {loaded} does so by its autoinit). CuPy and TensorRT "
            "share the GPU's primary context and cannot use its memory. Import "
            "pycuda.autoprimaryctx instead of pycuda.autoinit, or pop that context before loading"
        )


def _driver() -> ctypes.CDLL:
    """The CUDA driver, initialised; it says why where it cannot be."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        raise EngineError(
            f"there is no NVIDIA driver on this machine ({name} is not found)"
        ) from None
    _check(driver.cuInit(0), "starting the NVIDIA driver")
    return driver


def _attribute(driver: ctypes.CDLL, which: int, ordinal: int) -> int:
    value = ctypes.c_int()
    _check(
        driver.cuDeviceGetAttribute(ctypes.byref(value), which, ordinal),
        "asking the GPU's compute capability",
    )
    return value.value


def _check(code: int, doing: str) -> None:
    if code:
        known = {
            3: "the driver is shutting down",
            35: "the driver is older than the CUDA libraries",
            100: "no GPU is visible (CUDA_VISIBLE_DEVICES, or a container without --gpus)",
            101: "no such GPU",
            803: "driver and kernel module are of different versions; reboot",
            804: "a container's CUDA is newer than the host's driver",
            999: "unknown error; a reboot or 'nvidia-smi' tells more",
        }
        raise EngineError(f"{doing} failed: CUDA error {code}: {known.get(code, 'see its manual')}")
