"""Races between threads, and reads of what nobody has written, with the lines of both sides.

host_cuda/watch.h sees every access; here its messages get their places.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.findings import Finding, Place, author_files, place_of
from trtpatch.executors.host_compiler import WATCHED
from trtpatch.executors.replay import Job, Run, replay
from trtpatch.executors.sanitizer_log import ENDINGS
from trtpatch.plan import Launch

_MESSAGE = re.compile(
    r"trtpatch:(?P<how>write-write|read-write|write-read|unwritten) (?P<code>\w+) (?P<other>\w+)"
    r" (?P<region>-?\d+) (?P<offset>\d+)"
    r" (?P<block>\d+) (?P<thread>\d+) (?P<other_block>\d+) (?P<other_thread>\d+)"
)
_SHARED = {-1: "shared memory", -2: "dynamic shared memory"}
_VERBS = {
    "write-write": ("writes", "wrote"),
    "read-write": ("writes", "read"),
    "write-read": ("reads", "wrote"),
}


def find_races(
    job: Job, runs: Sequence[Run], *, cubins: Cubins, timeout_s: float
) -> Iterator[Finding]:
    """Run a job with every access watched.

    Args:
        job: what to run.
        runs: orders of threads and blocks.
        cubins: the cache.
        timeout_s: seconds after which the program is stopped; what it found until then counts.

    Raises:
        CompileError: the unit does not compile, or uses what the host cannot do.
    """
    replayed = replay(job, runs, WATCHED, cubins=cubins, timeout_s=timeout_s)
    launch = job.launches[0]
    seen = []
    for line in replayed.log.splitlines():
        if line.startswith("trtpatch:launch "):
            launch = job.launches[int(line.split()[1])]
        elif match := _MESSAGE.fullmatch(line):
            seen.append((launch, match))
    codes = {match[side] for _, match in seen for side in ("code", "other")} - {"0"}
    places = _places(replayed.program, sorted(codes), job)
    known = set()
    for word, (kind, message) in ENDINGS.items():
        if ending := re.search(rf"(?m)^trtpatch:{word} (.*)$", replayed.log):
            told = f"{message.format(ending[1])} (while every access was watched)"
            yield Finding(kind, launch.entry, "", 0, "", told)
    for launch, match in seen:
        finding = _finding(job, launch, match, places)
        key = (finding.kind, finding.file, finding.line, finding.buffer)
        if key not in known:
            known.add(key)
            yield finding


def _finding(
    job: Job, launch: Launch, match: re.Match[str], places: dict[str, list[Place]]
) -> Finding:
    region, offset = int(match["region"]), int(match["offset"])
    if region in _SHARED:
        buffer, where = _SHARED[region], f"byte {offset}" if region == -2 else "a cell"
    else:
        field = job.fields[region]
        buffer, where = field.name, field.describe(offset)
    (file, line), around = _place(places, match["code"])
    me = _thread(launch, match["block"], match["thread"])
    if match["how"] == "unwritten":
        message = f"{me} reads {where}, which nobody has written{around}"
        return Finding("uninitialised", launch.entry, file, line, buffer, message)
    (other_file, other_line), _ = _place(places, match["other"])
    other = _thread(launch, match["other_block"], match["other_thread"])
    does, did = _VERBS[match["how"]]
    message = (
        f"{me} {does} {where}, which {other} {did} at {other_file}:{other_line}"
        f" with no barrier between{around}"
    )
    return Finding("race", launch.entry, file, line, buffer, message)


def _place(places: dict[str, list[Place]], code: str) -> tuple[Place, str]:
    frames = places.get(code)
    return place_of(frames) if frames else (("?", 0), "")


def _thread(launch: Launch, block: str, thread: str) -> str:
    return f"thread {_index(int(thread), launch.block)} of block {_index(int(block), launch.grid)}"


def _index(number: int, sizes: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % sizes[0], number // sizes[0] % sizes[1], number // sizes[0] // sizes[1]


def _places(program: bytes, codes: Sequence[str], job: Job) -> dict[str, list[Place]]:
    """For each address of code, the calls in the author's text, the innermost first."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    if not codes or tool is None:
        return {}
    with tempfile.NamedTemporaryFile(prefix="trtpatch-") as file:
        file.write(program)
        file.flush()
        # A return address is that of the next instruction, which may be on another line.
        before = [f"{int(code, 16) - 1:x}" for code in codes]
        command = [tool, "-a", "-i", "-e", file.name, *before]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    frame = re.compile(rf"(?:\./)?({author_files(job.unit.text)}):(\d+)")
    found: dict[str, list[Place]] = {}
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            frames = found.setdefault(f"{int(line, 16) + 1:x}", [])
        elif match := frame.match(line):
            frames.append((match[1], int(match[2])))
    return found
