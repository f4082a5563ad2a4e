"""What the sanitizers say, in the author's terms: file, line and buffer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from trtpatch.executors.findings import Finding, Place, author_files, place_of
from trtpatch.executors.replay import Job

_GUARD_BYTES = 2048


def read_log(log: str, job: Job) -> Iterator[Finding]:
    """The findings of a program that was built under sanitizers.

    Args:
        log: what it wrote to stderr.
        job: what it ran.
    """
    reader = _Reader(job)
    for line in log.splitlines():
        yield from reader.take(line)
    yield from reader.finish()


_UNDEFINED = re.compile(r"(?P<file>.+?):(?P<line>\d+):\d+: runtime error: (?P<message>.*)")
_ADDRESS_ERROR = re.compile(r"==\d+==ERROR: AddressSanitizer: (?P<what>[\w-]+)(?P<message>.*)")
_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_ACCESS = re.compile(r"(?P<how>READ|WRITE) (?:of size (?P<size>\d+)|memory access)")
_GLOBAL = re.compile(r"is located (?P<distance>\d+) bytes .*? global variable '(?P<name>\w+)'")
_LOCAL = re.compile(r"'(?P<name>\w+)'.*<== Memory access")
ENDINGS = {
    "timeout": (
        "hang",
        "not at its end after {} s: a loop without end, or a wait for another block",
    ),
    "stopped": ("crash", "the program that ran it was stopped with code {}"),
}
"""What replay says of a program that did not come to its end."""

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
    place: Place = ("", 0)
    address: int | None = None
    variables: list[tuple[int, str]] = field(default_factory=list)
    frames: list[Place] = field(default_factory=list)


class _Reader:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._starts: dict[int, int] = {}
        self._entry = ""
        self._report: _Report | None = None
        self._calls: list[Place] = []
        names = author_files(job.unit.text)
        self._frame = re.compile(rf"\s+#\d+ 0x[0-9a-f]+ in .*? (?:\./)?({names}):(\d+)")

    def take(self, line: str) -> Iterator[Finding]:
        """The findings that end with this line of the log."""
        if line.startswith("trtpatch:"):
            yield from self.finish()
            yield from self._told(line)
        elif not self._report and (match := self._frame.match(line)):
            self._calls.append((match[1], int(match[2])))
        elif match := _UNDEFINED.match(line):
            yield from self.finish()
            kind = next((k for words, k in _KINDS.items() if words in line), "undefined")
            message = re.sub(r" 0x[0-9a-f]+", "", match["message"])
            place = match["file"], int(match["line"])
            self._report = _Report(kind, message, place, _address(line))
        elif match := _ADDRESS_ERROR.match(line):
            yield from self.finish()
            what = match["what"]
            outside = re.search("buffer|use-after|SEGV|BUS|unknown", what)
            kind = "division" if what == "FPE" else "out-of-bounds" if outside else "crash"
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
        elif word == "calls":
            self._calls = []
        elif word == "buffer":
            number, address = rest.split()
            self._starts[int(number)] = int(address, 16)
        elif word == "launch":
            self._entry = self._job.launches[int(rest)].entry
        elif word == "fault":
            kind, file, at, message = rest.split("\t", 3)
            place, around = place_of(self._calls) if self._calls else ((file, int(at)), "")
            yield Finding(kind, self._entry, *place, "", message + around)
        elif word in ENDINGS:
            kind, message = ENDINGS[word]
            yield Finding(kind, self._entry, "", 0, "", message.format(rest))

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
            place, around = place_of(report.frames)
            message += around
        return Finding(report.kind, self._entry, *place, buffer, message)

    def _buffer_at(self, report: _Report) -> tuple[str, str]:
        """The nearest buffer's name, and where in it the address lies."""
        if report.variables:
            return min(report.variables)[1], ""
        if report.address is None or not self._starts:
            return "", ""
        near = []
        for number, start in self._starts.items():
            offset, size = report.address - start, self._job.fields[number].nbytes
            near.append((max(-offset, offset - size), number, offset))
        distance, number, offset = min(near)
        if distance > _GUARD_BYTES:
            return "", ""
        return self._job.fields[number].name, self._job.fields[number].describe(offset)


def _address(line: str) -> int | None:
    match = _ADDRESS.search(line)
    return int(match[1], 16) if match else None
