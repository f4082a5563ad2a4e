"""What NVRTC and ptxas say, in terms of the file that the author wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trtpatch.compiler.includes import place, source_line, without_comments
from trtpatch.errors import Problem
from trtpatch.spec.ports import model_size_hint

CHECK = "trtpatch:"  # the file name of a generated check of a kernel, before the kernel's name
STATIC_SHARED_BYTES = 48 * 1024  # for what a kernel declares; only 'extern' may go beyond

_MODEL_SIZE = re.compile(r"no member (?:named )?['\"](model_[HW])['\"]")
_HEAD = re.compile(
    r"(?:(?P<file>.+?)\((?P<line>\d+)\)|At end of source): "
    r"(?P<level>(?:catastrophic )?error|warning|note|remark)(?: #\d+-D)?: (?P<message>.*)"
)
_CHATTER = re.compile(r"(?:\d+ .*errors? detected in the compilation of |Remark: |ptxas )")
_PTXAS_ERROR = re.compile(r"ptxas (?:application ptx input, line \d+; )?(?:error|fatal) *: (.*)")
_TOO_MUCH_SHARED = re.compile(
    r"Entry function '(?P<entry>\w+)' uses too much shared data \(0x(?P<used>[0-9a-f]+) bytes"
)
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_FUNCTION = re.compile(r"Function properties for (\S+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_DEFAULT_DEVICE = re.compile(r"Consider using -default-device.*")
_ADVICE = "Write __device__ before it, or __global__ where it is a kernel."
_KERNEL = re.compile(
    r"__global__\s+(?:void\s+|__launch_bounds__\s*\([^)]*\)\s*)*(?P<name>\w+)\s*\((?P<takes>[^)]*)\)"
)


@dataclass(frozen=True)
class Kernel:
    """What a kernel of a cubin uses, as ptxas counts it.

    Attributes:
        name: of the entry.
        registers: of a thread.
        shared_bytes: static shared memory of a block.
        stack_bytes: local memory of a thread: spills, and arrays that did not fit in registers.
        spill_bytes: the part of it that is spills, with those of all functions that were not
            inlined, since any kernel may call them.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class Remark:
    """An error or a warning.

    Attributes:
        error: whether it stopped the compilation.
        problem: place and message, and below the message the source line and notes. File and line
            are empty where neither the message nor a note has a place.
    """

    error: bool
    problem: Problem


def with_hint(message: str) -> str:
    """What a compiler says, and of a member that not every `Args` has, when there is one."""
    match = _MODEL_SIZE.search(message)
    return f"{message}: {model_size_hint(match[1])}" if match else message


def kernels(log: str) -> tuple[Kernel, ...]:
    """The kernels of a cubin, from a log made with `--ptxas-options=-v`."""
    entries: list[str] = []
    use: dict[str, dict[str, int]] = {}
    function = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entries.append(match[1])
        elif match := _FUNCTION.search(line):
            function = match[1]
        elif match := _FRAME.search(line):
            stack, stores, loads = map(int, match.groups())
            use[function] = {"stack": stack, "spill": max(stores, loads)}
        elif match := _REGISTERS.search(line):
            numbers = use.setdefault(function, {})
            numbers["registers"] = int(match[1])
            for name, pattern in (("shared", _SHARED), ("stack", _STACK)):
                if number := pattern.search(line):
                    numbers[name] = int(number[1])
    elsewhere = sum(numbers.get("spill", 0) for name, numbers in use.items() if name not in entries)
    return tuple(
        Kernel(
            name=name,
            registers=use[name].get("registers", 0),
            shared_bytes=use[name].get("shared", 0),
            stack_bytes=use[name].get("stack", 0),
            spill_bytes=use[name].get("spill", 0) + elsewhere,
        )
        for name in entries
    )


def remarks(log: str, text: str) -> Iterator[Remark]:
    """The errors and warnings of NVRTC about a text, without its counts and advice."""
    heads: list[re.Match[str]] = []  # of a remark and its notes
    below: list[str] = []
    for line in [*log.splitlines(), "Remark: end"]:
        match = _HEAD.fullmatch(line)
        if match and match["level"] == "note":
            heads.append(match)
            below.append(f"  note: {match['message']}")
        elif match or _CHATTER.match(line):
            if heads:
                yield _remark(heads, below, text)
            heads, below = [match] if match else [], []
        elif line.strip():
            below.append(line)


def errors(log: str, text: str) -> list[Problem]:
    """The errors of NVRTC; what the generated checks found is told in the author's terms.

    Args:
        log: of a compilation that failed.
        text: the author's, without the checks.
    """
    found = [remark.problem for remark in remarks(log, text) if remark.error]
    own = [problem for problem in found if not problem.file.startswith(CHECK)]
    if own:  # a text that is broken breaks the checks below it too
        end = place(text, len(text), label="")[0]
        return [problem._replace(file=problem.file or end) for problem in own]
    first = {problem.file: problem for problem in reversed(found)}
    return [_of_check(first[file], text) for file in dict.fromkeys(p.file for p in found)]


def ptxas_errors(log: str, text: str, *, arch: str) -> list[Problem]:
    """The errors of ptxas, which names no place; with `--ptxas-options=-v` it is silent on them."""
    found = []
    for message in _PTXAS_ERROR.findall(log):
        if match := _TOO_MUCH_SHARED.match(message):
            found.append(_too_much_shared(text, match["entry"], int(match["used"], 16), arch=arch))
        elif "aborted due to errors" not in message:
            found.append(Problem(place(text, len(text), label="")[0], 0, 0, f"ptxas: {message}"))
    return found


def misfits(
    kernels: Sequence[Kernel], entries: Sequence[str], text: str, *, arch: str
) -> list[Problem]:
    """What is wrong with the kernels of a cubin, although it compiled.

    Args:
        kernels: those in the cubin.
        entries: those that the contract launches.
        text: the author's.
        arch: of the cubin.
    """
    names = [kernel.name for kernel in kernels]
    return [_missing(text, entry, names) for entry in entries if entry not in names] + [
        # NVRTC 12.4 lets this pass, and the driver then refuses to load it.
        _too_much_shared(text, kernel.name, kernel.shared_bytes, arch=arch)
        for kernel in kernels
        if kernel.shared_bytes > STATIC_SHARED_BYTES
    ]


def _too_much_shared(text: str, entry: str, used: int, *, arch: str) -> Problem:
    return _at_kernel(
        text,
        entry,
        f"kernel {entry!r} declares {used} bytes of __shared__ memory; {arch}, as every GPU, has "
        f"room for {STATIC_SHARED_BYTES} declared so. Use less, or declare it 'extern __shared__' "
        "and give its bytes as 'shared:' of the launch in patch.yaml",
    )


def _missing(text: str, entry: str, compiled: Sequence[str] = ()) -> Problem:
    """A launched kernel is not in the text, or not under its name in the cubin."""
    there = [match["name"] for match in _definitions(text)]
    mangled = next((name for name in compiled if f"{len(entry)}{entry}" in name), None)
    if mangled:
        message = (
            f'kernel {entry!r} needs extern "C" before __global__; without it the cubin has it '
            f"as {mangled!r}"
        )
    elif entry in there:
        message = f"kernel {entry!r} must be defined outside of any namespace, class and #if"
    else:
        from trtpatch.spec.validate import choose

        message = f"no kernel {entry!r}, which the contract launches.{choose(entry, there)}"
    return _at_kernel(text, entry, message)


def _of_check(problem: Problem, text: str) -> Problem:
    entry = problem.file.removeprefix(CHECK)
    if f'"{entry}" is undefined' in problem.message:
        return _missing(text, entry)
    if "static assertion failed" not in problem.message:
        return problem
    if not entry:
        message = (
            "it and its record in Python differ in size. This is a mistake in trtpatch; please "
            f"report it with the contract. {problem.message}"
        )
        return Problem("struct Args", 0, 0, message)
    takes = next((match["takes"] for match in _definitions(text) if match["name"] == entry), "..")
    return _at_kernel(
        text,
        entry,
        f"kernel {entry!r} takes ({' '.join(takes.split())}); every kernel takes one argument, by "
        "value: (const Args args). Args has all that the contract names",
    )


def _definitions(text: str) -> Iterator[re.Match[str]]:
    return _KERNEL.finditer(without_comments(text))


def _at_kernel(text: str, entry: str, message: str) -> Problem:
    """A problem at the kernel's name, or at the author's file as a whole."""
    for match in _definitions(text):
        if match["name"] == entry:
            return Problem(*place(text, match.start("name"), label=""), message)
    return Problem(place(text, len(text), label="")[0], 0, 0, message)


def _remark(heads: Sequence[re.Match[str]], below: Sequence[str], text: str) -> Remark:
    placed = next((head for head in heads if head["file"]), None)
    file, line = (placed["file"], int(placed["line"])) if placed else ("", 0)
    caret = next((row.rstrip() for row in below if row.strip() == "^"), "")
    column = max(len(caret) - 2, 0)  # the source line is shown two columns to the right
    if line and not caret:  # before 12.4 NVRTC does not show it
        source = source_line(text, file, line)
        column = len(source) - len(source.lstrip()) + 1
        below = [f"  {source}", *below]
    message = _DEFAULT_DEVICE.sub(_ADVICE, heads[0]["message"])
    problem = Problem(file, line, column, "\n".join([with_hint(message), *below]))
    return Remark("error" in heads[0]["level"], problem)
