"""What the sanitizers say, in the author's terms: file, line and buffer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trtpatch.unit import Unit

_GUARD_BYTES = 2048


@dataclass(frozen=True)
class Finding:
    """One thing that a kernel does wrong.

    Attributes:
        kind: `out-of-bounds`, `alignment`, `null`, `division`, `undefined`, `divergence`, `mask`,
            `width`, `assert`, `trap`, `unwritten`, `uninitialised`, `order`, `hang` or `crash`.
        entry: the kernel; several where it cannot be told which.
        file, line: in the author's text; empty and 0 where there is no one place.
        buffer: its name; empty where none is concerned.
        message: what happens.
    """

    kind: str
    entry: str
    file: str
    line: int
    buffer: str
    message: str

    @property
    def spoils_results(self) -> bool:
        """Whether outputs mean nothing after it."""
        return self.kind in ("out-of-bounds", "hang", "crash")

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else ""
        buffer = f"{self.buffer}: " if self.buffer else ""
        return f"{place}{self.kind} in {self.entry}: {buffer}{self.message}"


@dataclass(frozen=True)
class Placed:
    """A buffer of the log, by its number."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int

    def describe(self, offset: int) -> str:
        """Where an offset in bytes lies, in elements."""
        element = offset // self.dtype.itemsize
        shape = list(self.shape)
        what = f"{self.dtype.name} {shape}, {self.nbytes // self.dtype.itemsize} elements"
        return f"element {element} of {what}"


def read_log(
    log: str, unit: Unit, entries: Sequence[str], buffers: Sequence[Placed]
) -> Iterator[Finding]:
    """The findings of a program built with host_cuda/replay.h.

    Args:
        log: what it wrote to stderr.
        unit: what it was built from.
        entries: the kernel of each launch.
        buffers: in the order of the job.
    """
    reader = _Reader(unit, entries, buffers)
    for line in log.splitlines():
        yield from reader.take(line)
    yield from reader.finish()


_UNDEFINED = re.compile(r"(?P<file>.+?):(?P<line>\d+):\d+: runtime error: (?P<message>.*)")
_ADDRESS_ERROR = re.compile(r"==\d+==ERROR: AddressSanitizer: (?P<what>[\w-]+)(?P<message>.*)")
_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_ACCESS = re.compile(r"(?P<how>READ|WRITE) (?:of size (?P<size>\d+)|memory access)")
_GLOBAL = re.compile(r"is located (?P<distance>\d+) bytes .*? global variable '(?P<name>\w+)'")
_LOCAL = re.compile(r"'(?P<name>\w+)'.*<== Memory access")
_DYNAMIC_SHARED = "dynamic shared memory"
_KINDS = {
    "misaligned address": "alignment",
    "out of bounds": "out-of-bounds",
    "insufficient space": "out-of-bounds",
    "null pointer": "null",
    "division by zero": "division",
}


@dataclass
class _Report:
    """One report of a sanitizer, collected line by line.

    Attributes:
        message: in the sanitizer's words, without addresses.
        place: file and line that it names itself.
        address: that was accessed.
        variables: distance in bytes and name of what lies near it.
        frames: file and line of each call in the author's text, the innermost first.
    """

    kind: str
    message: str
    place: tuple[str, int] = ("", 0)
    address: int | None = None
    variables: list[tuple[int, str]] = field(default_factory=list)
    frames: list[tuple[str, int]] = field(default_factory=list)


class _Reader:
    def __init__(self, unit: Unit, entries: Sequence[str], buffers: Sequence[Placed]) -> None:
        self._entries = entries
        self._buffers = buffers
        self._starts: dict[int, int] = {}
        self._entry = ""
        self._report: _Report | None = None
        files = sorted(set(re.findall(r'(?m)^#line \d+ "(.*)"$', unit.text)), key=len)
        names = "|".join(re.escape(file) for file in reversed(files)) or r"(?!)"
        self._frame = re.compile(rf"\s+#\d+ 0x[0-9a-f]+ in .*? (?:\./)?({names}):(\d+)")

    def take(self, line: str) -> Iterator[Finding]:
        """The findings that end with this line of the log."""
        if line.startswith("trtpatch:"):
            yield from self.finish()
            yield from self._told(line)
        elif match := _UNDEFINED.match(line):
            yield from self.finish()
            kind = next((k for words, k in _KINDS.items() if words in line), "undefined")
            message = re.sub(r" 0x[0-9a-f]+", "", match["message"])
            place = match["file"], int(match["line"])
            self._report = _Report(kind, message, place, _address(line))
        elif match := _ADDRESS_ERROR.match(line):
            yield from self.finish()
            what = match["what"]
            kind = "crash" if what == "stack-overflow" else "out-of-bounds"
            self._report = _Report(kind, what, address=_address(line))
            if what == "use-after-poison":  # replay.h poisons nothing else
                self._report.variables.append((0, _DYNAMIC_SHARED))
        elif self._report:
            self._add(self._report, line)

    def finish(self) -> Iterator[Finding]:
        """The finding of the report that is being collected."""
        if self._report:
            yield self._finding(self._report)
        self._report = None

    def _told(self, line: str) -> Iterator[Finding]:
        word, _, rest = line.removeprefix("trtpatch:").partition(" ")
        if word == "run":
            self._starts = {}
        elif word == "buffer":
            number, address = rest.split()
            self._starts[int(number)] = int(address, 16)
        elif word == "launch":
            self._entry = self._entries[int(rest)]
        elif word == "fault":
            kind, file, at, message = rest.split("\t", 3)
            yield Finding(kind, self._entry, file, int(at), "", message)
        elif word == "timeout":
            message = f"not at its end after {rest} s: does it wait for a thread of another block?"
            yield Finding("hang", self._entry, "", 0, "", message)
        elif word == "killed":
            yield Finding("crash", self._entry, "", 0, "", f"ended by signal {rest}")

    def _add(self, report: _Report, line: str) -> None:
        if match := self._frame.match(line):
            report.frames.append((match[1], int(match[2])))
        elif (match := _ACCESS.search(line)) and "of " not in report.message:
            how = "reads" if match["how"] == "READ" else "writes"
            report.message = f"{how} {match['size']} bytes" if match["size"] else how
        elif match := _GLOBAL.search(line):
            report.variables.append((int(match["distance"]), match["name"]))
        elif match := _LOCAL.search(line):
            report.variables.append((0, match["name"]))

    def _finding(self, report: _Report) -> Finding:
        place, message = report.place, report.message
        buffer, where = self._buffer_at(report)
        if where:
            message += f", at {where}"
        if report.frames:
            kernel_file = report.frames[-1][0]  # the entry's own
            place = next(frame for frame in report.frames if frame[0] == kernel_file)
            around = [f"{file}:{line}" for file, line in report.frames if (file, line) != place]
            if around:
                message += f" (by way of {', '.join(around)})"
        return Finding(report.kind, self._entry, *place, buffer, message)

    def _buffer_at(self, report: _Report) -> tuple[str, str]:
        """The nearest buffer's name, and where in it the address lies."""
        if report.variables:
            return min(report.variables)[1], ""
        if report.address is None or not self._starts:
            return "", ""
        near = []
        for number, start in self._starts.items():
            offset, size = report.address - start, self._buffers[number].nbytes
            near.append((max(-offset, offset - size), number, offset))
        distance, number, offset = min(near)
        if distance > _GUARD_BYTES:
            return "", ""
        return self._buffers[number].name, self._buffers[number].describe(offset)


def _address(line: str) -> int | None:
    match = _ADDRESS.search(line)
    return int(match[1], 16) if match else None
