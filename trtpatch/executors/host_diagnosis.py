"""Why a unit is not for the host: constructs that it cannot do, and a C++ compiler's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trtpatch.compiler.diagnosis import CHECK, with_hint
from trtpatch.compiler.includes import place, without_comments
from trtpatch.errors import CompileError, Problem
from trtpatch.unit import Unit

HEADERS = Path(__file__).resolve().parent / "host_cuda"
"""What stands in for CUDA."""

_UNKNOWN = {
    "inline PTX": r"\b(?:asm|__asm__|__asm)\b",
    "launches from within a kernel": r"<<<",
    "cooperative groups": r"\bcooperative_groups\b",
    "CUDA's libraries": r"\b(?:cub|thrust|cuda|nvcuda)\s*::",
    "textures and surfaces": r"\b(?:cuda(?:Texture|Surface)Object_t|(?:tex|surf)[123]D\w*)\b",
    "the CUDA runtime": r"\bcuda[A-Z]\w*(?=\s*\()",
    "the types of cuda_fp16.h": r"\b(?:__half2?|half2|__nv_bfloat162?)\b",
    "warp calls without a mask": r"\b__(?:shfl(?:_up|_down|_xor)?|any|all|ballot)(?=\s*\()",
    "managed memory": r"\b__managed__\b",
    "thread block clusters": r"\b__cluster_dims__\b",
}
_SCAN = re.compile(
    r'(?P<text>"(?:\\.|[^"\\])*")|'
    + "|".join(f"(?P<k{index}>{pattern})" for index, pattern in enumerate(_UNKNOWN.values()))
)
_MARKER = re.compile(r'# (?P<line>\d+) "(?P<file>(?:\\.|[^"\\])*)"')
_ERROR = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<message>.*)"
)
_UNINITIALISED = re.compile(
    r"(?m)^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): warning: "
    r"(?P<message>.*) \[-W[\w-]*uninitialized\]"
)
_CONTEXT = re.compile(
    r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+):\s+"
    r"(?:required from|note: in instantiation|recursively required)"
)


def generated_label(unit: Unit) -> str:
    """What messages call the text before its first `#line`."""
    return f"{unit.name} (generated)"


def unknown_constructs(preprocessed: str) -> Iterator[Problem]:
    """What the host cannot do, in what the preprocessor leaves of a unit's text."""
    kinds = tuple(_UNKNOWN)
    file, line = "", 0
    for content in preprocessed.splitlines():
        if marker := _MARKER.match(content):
            file, line = marker["file"], int(marker["line"]) - 1
            continue
        line += 1
        for match in _SCAN.finditer(content):
            if match.lastgroup == "text" or match.lastgroup is None:
                continue
            kind = kinds[int(match.lastgroup[1:])]
            message = f"'{match[0]}': {kind} cannot be used on the host"
            yield Problem(file, line, match.start() + 1, message)


def uninitialised(stderr: str) -> Iterator[Problem]:
    """Where g++ or clang++ sees that a variable may have no value yet."""
    for match in _UNINITIALISED.finditer(stderr):
        if not _is_ours(match["file"]):
            place = match["file"], int(match["line"]), int(match["column"])
            yield Problem(*place, match["message"])


def compile_error(unit: Unit, stderr: str) -> CompileError:
    """The errors of g++ or clang++ about a unit, in the author's terms."""
    found = list(dict.fromkeys(_problems(stderr)))
    # A text that is broken breaks the table of its kernels too.
    problems = [problem for problem in found if not problem.file.startswith(CHECK)]
    if not problems:
        broken = dict.fromkeys(problem.file.removeprefix(CHECK) for problem in found)
        problems = [_of_kernel(entry, unit) for entry in broken if entry]
    said = stderr.strip()[-2000:] or "the compiler failed, and did not say why"
    unread = "" if problems else f"\n{said}"
    return CompileError(
        f"patch {unit.name} does not compile on the host:{unread}", problems=problems
    )


def _of_kernel(entry: str, unit: Unit) -> Problem:
    """Why a kernel cannot be put into the table of kernels."""
    if match := re.search(rf"\b{entry}(?=\s*\()", without_comments(unit.text)):
        message = f"kernel {entry!r}: every kernel takes one argument, by value: (const Args args)"
        return Problem(*place(unit.text, match.start(), label=generated_label(unit)), message)
    file, *_ = place(unit.text, len(unit.text), label=generated_label(unit))
    return Problem(file, 0, 0, f"no kernel {entry!r}, which the contract launches")


def _problems(stderr: str) -> Iterator[Problem]:
    """The compiler's errors. One in our headers is put where the author's text led to it."""
    context: Problem | None = None
    waiting = ""
    for line in stderr.splitlines():
        if where := _CONTEXT.match(line):
            if not _is_ours(where["file"]):
                context = Problem(where["file"], int(where["line"]), int(where["column"]), "")
                if waiting:
                    yield Problem(context.file, context.line, context.column, waiting)
                    waiting = ""
        elif error := _ERROR.match(line):
            message = re.sub(r"\{anonymous\}::|\(anonymous namespace\)::", "", error["message"])
            message = with_hint(message)
            if not _is_ours(error["file"]):
                yield Problem(error["file"], int(error["line"]), int(error["column"] or 0), message)
            elif context:  # gcc says first where it comes from, clang afterwards
                yield Problem(context.file, context.line, context.column, message)
            else:
                waiting = message
            context = None


def _is_ours(file: str) -> bool:
    return Path(file).parent == HEADERS
