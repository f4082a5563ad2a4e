"""NVRTC by its C interface: found, asked for its version, called.

ctypes, because it is the lightest and leans on the least: 60 ms to find and load the library, with
no driver and for CUDA 12 and 13 alike, where `cuda.core` takes 400 ms and a second wheel bound to
one CUDA major, and CuPy's private binding imports all of CuPy. `cuda.pathfinder`, on which CuPy
stands, finds the library, so the kernels here and CuPy's own come from the same NVRTC.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from trtpatch.errors import CompileError
from trtpatch.extras import install

log = logging.getLogger(__name__)

_WHEEL = re.compile(r"nvidia_cuda_nvrtc(?:_cu\d+)?-(?P<release>[\d.]+)\.dist-info")
_TOOLKIT = re.compile(r"libnvrtc\.so\.(?P<release>\d+\.\d+\.\d+)")
_MAPPED = re.compile(r"(?m)(/.*/lib(?:cudart|nvrtc|nvJitLink|cublas)\.so\.(\d+)[\d.]*)$")


@dataclass(frozen=True)
class Nvrtc:
    """A loaded NVRTC.

    Attributes:
        path: the library's file.
        release: its version as exactly as can be known, `13.5.37`; part of every cache key.
        archs: the compute capabilities it compiles for, `(75, 80, ..)`, ascending.
    """

    path: Path
    release: str
    archs: tuple[int, ...]
    _library: ctypes.CDLL = field(repr=False)

    def compile(self, text: str, *, label: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """Compile a text that includes nothing.

        Args:
            text: CUDA C++.
            label: the file's name in messages, up to the text's first `#line`.
            options: NVRTC's own, with `--gpu-architecture=sm_..`.

        Returns:
            The cubin, or None where the text does not compile; and the log.
        """
        program = ctypes.c_void_p()
        self._call(
            "CreateProgram", ctypes.byref(program), text.encode(), label.encode(), 0, None, None
        )
        try:
            # From 12.9 on it would ask the driver's cache on the user's disk, and keep silent on
            # the registers of what it finds there.
            uncached = ["--no-cache"] if _numbers(self.release) >= (12, 9) else []
            options = [*options, *uncached]
            flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            failed = self._library.nvrtcCompileProgram(program, len(options), flags)
            message = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            return (None if failed else self._bytes("CUBIN", program)), message
        finally:
            self._call("DestroyProgram", ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self._call(f"Get{what}", program, data)
        return data.raw

    def _call(self, name: str, *arguments: object) -> None:
        _call(self._library, name, *arguments)


@functools.cache
def installed() -> str | None:
    """The release of the NVRTC wheel, without loading 140 MB: a look at file names, 0.4 ms.

    None where there is no wheel; NVRTC may still come with a CUDA toolkit. Of two wheels it is the
    newer, as `cuda.pathfinder` prefers.
    """
    return max(
        (release for entry in sys.path for release in _wheels(entry)), key=_numbers, default=None
    )


@functools.cache
def load() -> Nvrtc:
    """Find and load NVRTC, once a process.

    Raises:
        CompileError: there is none, or it is older than CUDA 11.2.
    """
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path
        if path is None:
            raise OSError("its file is not known")
        library = ctypes.CDLL(path)
    except (ImportError, RuntimeError, OSError) as error:
        why = "" if isinstance(error, ImportError) else f" ({str(error).strip().splitlines()[0]})"
        raise CompileError(
            f"NVRTC, which compiles the kernels, is not to be found{why}. Install it, which takes"
            f" no GPU: {install('nvrtc')}; for CUDA 12, nvidia-cuda-nvrtc-cu12 instead"
        ) from error
    try:
        archs = _archs(library)
    except AttributeError:
        raise CompileError(f"{path} is older than CUDA 11.2; trtpatch needs 12 or 13") from None
    major, minor = ctypes.c_int(), ctypes.c_int()
    _call(library, "Version", ctypes.byref(major), ctypes.byref(minor))
    _warn_of_two_majors()
    release = _release(Path(path), f"{major.value}.{minor.value}")
    return Nvrtc(path=Path(path), release=release, archs=archs, _library=library)


def cuda_majors() -> Mapping[int, str]:
    """The CUDA majors whose libraries this process has loaded, each with one such file.

    More than one is a warning sign: a cubin made by the newer runs only if the driver is as new.
    Known on Linux alone; elsewhere empty.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {int(major): file for file, major in sorted(set(_MAPPED.findall(maps)))}


def _warn_of_two_majors() -> None:
    majors = cuda_majors()
    if len(majors) > 1:
        log.warning(
            "two CUDA majors are in one process: %s. If kernels do not load, install packages of "
            "one major alone.",
            " and ".join(f"{major} ({file})" for major, file in sorted(majors.items())),
        )


def _release(path: Path, version: str) -> str:
    """`version` with the build number that a wheel's or a toolkit's file names tell."""
    real = path.resolve()
    if match := _TOOLKIT.fullmatch(real.name):
        return match["release"]
    wheels = (release for parent in path.parents for release in _wheels(str(parent)))
    return next((r for r in wheels if r.startswith(f"{version}.")), version)


def _wheels(folder: str) -> Iterator[str]:
    """The releases of the NVRTC wheels installed in a folder."""
    with suppress(OSError), os.scandir(folder or ".") as files:
        for file in files:
            if match := _WHEEL.fullmatch(file.name):
                yield match["release"]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _archs(library: ctypes.CDLL) -> tuple[int, ...]:
    count = ctypes.c_int()
    _call(library, "GetNumSupportedArchs", ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    _call(library, "GetSupportedArchs", archs)
    return tuple(sorted(archs))


def _call(library: ctypes.CDLL, name: str, *arguments: object) -> None:
    code = getattr(library, f"nvrtc{name}")(*arguments)
    if code:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CompileError(f"nvrtc{name}: {library.nvrtcGetErrorString(code).decode()}")
