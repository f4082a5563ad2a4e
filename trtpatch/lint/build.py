"""What the compilers at hand say of a kernel, for the sizes of a case."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trtpatch.compiler.cubins import Cubins
from trtpatch.compiler.includes import source_line
from trtpatch.errors import CompileError, Problem
from trtpatch.lint.kernel_text import KernelText
from trtpatch.lint.remarks import Remark, Severity
from trtpatch.plan import PatchStep
from trtpatch.unit import Unit, author_text, make_unit

_WARNING = re.compile(
    r"(?m)^(?P<file>\S.*?):(?P<line>\d+):(?P<column>\d+): (?P<message>.*(?:\n\s.*)*)"
)

ARCH = "sm_75"
"""The oldest architecture that patches are for."""


def compile_step(step: PatchStep, text: KernelText, cubins: Cubins) -> Iterator[Remark | str]:
    """Compile for the host and for a GPU.

    Yields:
        Remarks; and, as text, what could not be tried and why.
    """
    unit = make_unit(step)
    known = set()
    for compiler in (_host, _nvrtc):
        for one in compiler(unit, text, cubins):
            place = one if isinstance(one, str) else (one.file, one.line)
            if place not in known:
                known.add(place)
                yield one


def _host(unit: Unit, text: KernelText, cubins: Cubins) -> Iterator[Remark | str]:
    from trtpatch.executors.host_compiler import LIBRARY, build, find_compiler

    try:
        find_compiler()
    except CompileError as error:
        yield f"not compiled for the host: {error}"
        return
    try:
        built = build(unit, LIBRARY, cubins)
    except CompileError as error:
        yield from _remarks(error, text)
    else:
        yield from (_remark(one, text, "warning") for one in built.warnings)


def _nvrtc(unit: Unit, text: KernelText, cubins: Cubins) -> Iterator[Remark | str]:
    from trtpatch.compiler import nvrtc
    from trtpatch.compiler.compile import cubin_for

    try:
        nvrtc.load()
    except CompileError as error:
        yield (
            "not compiled for a GPU, which alone finds some mistakes, such as a helper without"
            f" __device__, and needs none: {error}"
        )
        return
    try:
        cubin = cubin_for(unit, arch=ARCH, cubins=cubins, quiet=True)
    except CompileError as error:
        yield from _remarks(error, text)
    else:
        for said in _WARNING.finditer(cubin.log):
            place = said["file"], int(said["line"]), int(said["column"])
            yield _remark(Problem(*place, said["message"].rstrip()), text, "warning")


def _remark(problem: Problem, text: KernelText, severity: Severity) -> Remark:
    place = text.path(problem.file), problem.line, problem.column
    said, newline, below = problem.message.partition("\n")
    hint = _hint(problem, text) if severity == "error" else ""
    return Remark("compile", severity, *place, f"{said}{hint}{newline}{below}")


def _hint(problem: Problem, text: KernelText) -> str:
    """Which runtime parameter the line takes for a number."""
    line = source_line(author_text(text.patch), problem.file, problem.line)
    for name, spec in text.patch.spec.params.items():
        if spec.runtime and re.search(rf"(?<!\*)(?<!\* )\b\w+\.{name}\b(?!\s*\[)", line):
            return f"; {name} is a runtime parameter: read it as *args.{name}"
    return ""


def _remarks(error: CompileError, text: KernelText) -> Iterator[Remark]:
    yield from (_remark(problem, text, "error") for problem in error.problems)
    if not error.problems:
        yield Remark("compile", "error", str(text.patch.kernel), 0, 0, str(error))
