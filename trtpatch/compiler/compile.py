"""A unit's text and an architecture, to a cubin, through NVRTC or the cache.

All that decides the bytes is in the cache's key: the whole text, every option, the architecture and
the release of NVRTC. No time and no file name is.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Protocol

from trtpatch.compiler import diagnosis, nvrtc
from trtpatch.compiler.cubins import Cubins, Entry, key_of
from trtpatch.compiler.diagnosis import CHECK, Kernel
from trtpatch.compiler.includes import stray_includes
from trtpatch.compiler.options import options_of
from trtpatch.errors import CompileError, Problem
from trtpatch.extras import install

if TYPE_CHECKING:
    from trtpatch.unit import Unit

log = logging.getLogger(__name__)

_CHECKS = f'\n#line 1 "{CHECK}"\n'  # begins what is added below a unit's text


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture.

    Attributes:
        name: the patch's name.
        arch: `sm_90`.
        code: an ELF file, as the driver loads it.
        compiler: what made it, `NVRTC 13.5.37`.
        log: the compiler's warnings; empty where it had none.
        kernels: what each kernel uses.
    """

    name: str
    arch: str
    code: bytes = field(repr=False)
    compiler: str
    log: str = field(repr=False)
    kernels: tuple[Kernel, ...]


class Compile(Protocol):
    """Whoever has a unit's cubin: the cache and NVRTC, or a bundle."""

    def __call__(self, unit: Unit, *, arch: str) -> Cubin:
        """The cubin of a unit for an architecture such as `sm_90`.

        Raises:
            CompileError: there is none, and why.
        """


def cubin_for(unit: Unit, *, arch: str, cubins: Cubins, quiet: bool = False) -> Cubin:
    """The cubin of a unit, from the cache or else from NVRTC.

    A hit neither loads nor needs NVRTC: the release of an installed wheel is read off a file name.
    (Without a wheel, as with a CUDA toolkit, the library is loaded to ask it, 60 ms.)

    Args:
        unit: from `trtpatch.unit`.
        arch: `sm_90`; the GPU's own.
        cubins: the cache; counts its hits and misses.
        quiet: whether the compiler's warnings are not logged.

    Raises:
        CompileError: the unit does not compile.
    """
    job = _job(unit, arch)
    wheel = nvrtc.installed()
    likely = wheel and f"NVRTC {wheel}"
    if likely and (entry := cubins.get(job.key(likely))):
        return _restore(job, entry)
    actual = f"NVRTC {nvrtc.load().release}"
    if actual != likely and (entry := cubins.get(job.key(actual))):
        return _restore(job, entry)
    cubin = _compile(job, quiet=quiet)
    notes = {"compiler": cubin.compiler, "log": cubin.log, "kernels": [*map(asdict, cubin.kernels)]}
    cubins.put(job.key(actual), cubin.code, notes=notes)
    return cubin


def compile_unit(unit: Unit, *, arch: str) -> Cubin:
    """Compile a unit, with no GPU, no driver and no cache.

    C++17, restrict pointers, line information. Unless the contract says `fast_math`, subnormals are
    kept, division and square root are rounded correctly and multiply-add is not fused, so that
    + - * / and sqrtf give the bits that NumPy gives for float32.

    Args:
        unit: from `trtpatch.unit`; each of its entries must be a kernel, `extern "C"`, that takes
            one argument, `Args` by value, as large as `args_dtype`. Of NVRTC's options it may set
            `--fmad`, `--maxrregcount` and `--extra-device-vectorization`.
        arch: `sm_75`, `sm_80`, ...

    Raises:
        CompileError: NVRTC is missing or does not know the architecture; an option is refused; the
            text does not compile; a kernel is missing, takes something else, or uses too much
            shared memory. `problems` has the places.
    """
    return _compile(_job(unit, arch))


@dataclass(frozen=True)
class _Job:
    """Exactly what NVRTC is given.

    Attributes:
        name, arch, entries: as for `compile`.
        text: the unit's text and, below `_CHECKS`, checks of its kernels.
        options: all of them.
    """

    name: str
    arch: str
    text: str
    options: tuple[str, ...]
    entries: tuple[str, ...]

    def key(self, compiler: str) -> str:
        return key_of(self.name, self.arch, self.text, *self.options, compiler)

    @property
    def label(self) -> str:
        """What NVRTC calls the text before its first `#line`."""
        return f"{self.name} (generated)"

    @property
    def authored(self) -> str:
        """The text without the checks."""
        return self.text.partition(_CHECKS)[0]


def _job(unit: Unit, arch: str) -> _Job:
    if not re.fullmatch(r"sm_\d+[af]?", arch):
        raise CompileError(f"{arch!r} is no GPU architecture; one is written sm_90")
    return _Job(
        name=unit.name,
        arch=arch,
        text=unit.text + _checks(unit),
        options=(f"--gpu-architecture={arch}", *options_of(unit)),
        entries=unit.entries,
    )


def _checks(unit: Unit) -> str:
    """C++ that does not compile where a kernel is missing or does not take `Args`."""
    size = unit.args_dtype.itemsize
    lines = [
        f"{_CHECKS}template <typename Kernel> struct trtpatch_takes_args",
        "{ static constexpr bool value = false; };",
        "template <> struct trtpatch_takes_args<void (*)(Args)>",
        "{ static constexpr bool value = true; };",
        f'static_assert(sizeof(Args) == {size}, "its record in Python has {size} bytes");',
    ]
    for entry in unit.entries:
        lines.append(f'#line 1 "{CHECK}{entry}"')
        lines.append(f'static_assert(trtpatch_takes_args<decltype(&{entry})>::value, "");')
    return "\n".join([*lines, ""])


def _compile(job: _Job, *, quiet: bool = False) -> Cubin:
    if strays := list(stray_includes(job.text, label=job.label)):
        raise _failure(job, strays)
    library = nvrtc.load()
    _check_arch(job, library)
    started = time.perf_counter()
    code, said = library.compile(job.text, label=job.label, options=job.options)
    if code is None:
        raise _failure(job, _problems(job, library, said), said)
    kernels = diagnosis.kernels(said)
    if misfits := diagnosis.misfits(kernels, job.entries, job.authored, arch=job.arch):
        raise _failure(job, misfits)
    warnings = "\n".join(str(remark.problem) for remark in diagnosis.remarks(said, job.text))
    if warnings and not quiet:
        log.warning("patch %s compiles with warnings:\n%s", job.name, warnings)
    took_ms = 1000 * (time.perf_counter() - started)
    log.info("compiled %s for %s in %.0f ms", job.name, job.arch, took_ms)
    return Cubin(job.name, job.arch, code, f"NVRTC {library.release}", warnings, kernels)


def _restore(job: _Job, entry: Entry) -> Cubin:
    notes = entry.notes
    kernels = tuple(Kernel(**numbers) for numbers in notes["kernels"])
    return Cubin(job.name, job.arch, entry.data, notes["compiler"], notes["log"], kernels)


def _check_arch(job: _Job, library: nvrtc.Nvrtc) -> None:
    number = int(re.sub(r"\D", "", job.arch))
    if number in library.archs:
        return
    if number > max(library.archs):
        remedy = "If the GPU is newer than this NVRTC: pip install -U nvidia-cuda-nvrtc"
    elif number < min(library.archs):
        remedy = f"It gave that GPU up; an older CUDA major has it: {install('cu12')}"
    else:
        remedy = "There is no such GPU."
    raise CompileError(
        f"patch {job.name}: NVRTC {library.release} ({library.path}) does not compile for "
        f"{job.arch}, but for {', '.join(f'sm_{arch}' for arch in library.archs)}. {remedy}"
    )


def _problems(job: _Job, library: nvrtc.Nvrtc, said: str) -> list[Problem]:
    """Why NVRTC, or ptxas within it, failed."""
    if found := diagnosis.errors(said, job.authored):
        return found
    quiet = [option for option in job.options if not option.startswith("--ptxas-options")]
    _, said = library.compile(job.text, label=job.label, options=quiet)
    return diagnosis.ptxas_errors(said, job.authored, arch=job.arch)


def _failure(job: _Job, problems: Sequence[Problem], said: str = "") -> CompileError:
    unread = "" if problems else f"\n{said}"
    return CompileError(
        f"patch {job.name} does not compile for {job.arch}:{unread}", problems=problems
    )
