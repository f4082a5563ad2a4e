"""A unit's kernels as functions in this process."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, TrtpatchError
from trtpatch.executors.host_compiler import LIBRARY, build
from trtpatch.plan import Launch
from trtpatch.unit import Unit

MAX_THREADS = 1024
MAX_SHARED_BYTES = 227 * 1024
MAX_ARGS_BYTES = 32 * 1024


class LaunchError(TrtpatchError):
    """A kernel did what ends a launch on a GPU, or what CUDA leaves undefined.

    Attributes:
        kind: `divergence`, `mask`, `width`, `alignment`, `null`, `division`, `out-of-bounds` of
            dynamic shared memory, `assert` or `trap`.
        file, line: where, in the author's file; line 0 where there is no place.
        message: what happened.
    """

    def __init__(self, kind: str, file: str, line: int, message: str) -> None:
        self.kind, self.file, self.line, self.message = kind, file, line, message
        super().__init__(f"{file}:{line}: {message}" if line else message)


class _Launch(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_uint32),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
        ("args_bytes", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("args", ctypes.c_void_p),
    ]


class _Report(ctypes.Structure):
    _fields_ = [
        ("line", ctypes.c_int),
        ("kind", ctypes.c_char * 28),
        ("file", ctypes.c_char * 512),
        ("message", ctypes.c_char * 1024),
    ]


class HostUnit:
    """A unit that was compiled for this machine and loaded.

    Any thread may launch; those that launch kernels of one unit take turns.
    """

    _POISON = 0x7F  # as floats and integers, very large: a shared array read too early stands out

    def __init__(self, unit: Unit, library: ctypes.CDLL) -> None:
        self.unit = unit
        self._launch = library.trtpatch_launch
        self._launch.argtypes = [ctypes.POINTER(_Launch), ctypes.POINTER(_Report)]
        self._launch.restype = None

    @classmethod
    def build(cls, unit: Unit, cubins: Cubins) -> HostUnit:
        """Compile a unit, or take it from the cache, and load it.

        Raises:
            CompileError: it does not compile, or uses what the host cannot do.
        """
        built = build(unit, LIBRARY, cubins)
        try:
            return cls(unit, _load(built.data, built.path))
        except (OSError, AttributeError) as error:
            raise CompileError(f"{unit.name} was compiled but does not load: {error}") from None

    def launch(
        self, launch: Launch, args: np.ndarray[Any, Any] | np.void | bytes, *, seed: int = 0
    ) -> None:
        """Run one launch to its end.

        Args:
            launch: the entry, and grid and block as x, y, z.
            args: the bytes of `struct Args`, with addresses in this process.
            seed: 0 takes blocks and threads in the order of their indices; any other number
                shuffles them, and at each barrier anew. Results must not depend on it.

        Raises:
            LaunchError: the kernel broke a rule; how far it came is unknown.
            CompileError: the launch is beyond what any GPU can do.
        """
        check_launch(self.unit, launch)
        data = args if isinstance(args, bytes) else args.tobytes()
        request = _Launch(
            entry=self.unit.entries.index(launch.entry),
            grid=launch.grid,
            block=launch.block,
            shared_bytes=launch.shared_bytes,
            poison=self._POISON,
            args_bytes=len(data),
            seed=seed,
            args=ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p),
        )
        report = _Report()
        self._launch(ctypes.byref(request), ctypes.byref(report))
        if report.kind:
            file, message = report.file.decode(), report.message.decode()
            place = "" if report.line else f"{self.unit.name}, {launch.entry}: "
            raise LaunchError(report.kind.decode(), file, report.line, place + message)


def check_launch(unit: Unit, launch: Launch) -> None:
    """Refuse what no GPU can launch.

    Raises:
        CompileError: too many threads or blocks, too much shared memory, or no such entry.
    """
    x, y, z = launch.block
    wrong = ""
    if launch.entry not in unit.entries:
        wrong = f"there is no such kernel; there are {', '.join(unit.entries)}"
    elif not 1 <= x * y * z <= MAX_THREADS or min(launch.block) < 1 or z > 64:
        wrong = f"block {launch.block} has not 1 to {MAX_THREADS} threads, with z to 64"
    elif min(launch.grid) < 1 or launch.grid[0] >= 2**31 or max(launch.grid[1:]) > 65535:
        wrong = f"grid {launch.grid} is not within (2147483647, 65535, 65535)"
    elif not 0 <= launch.shared_bytes <= MAX_SHARED_BYTES:
        wrong = f"{launch.shared_bytes} bytes of shared memory are more than {MAX_SHARED_BYTES}"
    elif unit.args_dtype.itemsize > MAX_ARGS_BYTES:
        wrong = f"Args has {unit.args_dtype.itemsize} bytes, more than {MAX_ARGS_BYTES}"
    if wrong:
        raise CompileError(f"{unit.name}: cannot launch {launch.entry}: {wrong}")


def _load(data: bytes, path: Path | None) -> ctypes.CDLL:
    if path is not None:
        return ctypes.CDLL(str(path))
    with tempfile.NamedTemporaryFile(prefix="trtpatch-", suffix=".so") as file:
        file.write(data)
        file.flush()
        return ctypes.CDLL(file.name)  # stays mapped when the file is gone
