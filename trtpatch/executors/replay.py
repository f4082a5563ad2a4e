"""Launches in a program of their own, which sanitizers watch from its start to its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.findings import Field
from trtpatch.executors.host_compiler import Recipe, build, find_compiler, is_clang
from trtpatch.plan import Launch
from trtpatch.unit import Unit


@dataclass(frozen=True)
class Run:
    """One time through all launches, with every buffer as it was at first.

    Attributes:
        seed: of the order of blocks and threads; 0 for that of their indices.
        poison: every byte of what holds nothing yet.
    """

    seed: int
    poison: int


@dataclass(frozen=True)
class Job:
    """What to run.

    Attributes:
        unit: what to build.
        launches: in their order.
        fields: every buffer that the kernels reach.
        args: the bytes of `struct Args`; its addresses are filled in by the program.
    """

    unit: Unit
    launches: tuple[Launch, ...]
    fields: tuple[Field, ...]
    args: bytes

    def encode(self, runs: Sequence[Run]) -> bytes:
        """The file that host_cuda/replay.h reads."""
        index = {field.name: i for i, field in enumerate(self.fields)}
        buffers = [(f.nbytes, f.role == "out", f.data is not None) for f in self.fields]
        pointers = [
            (index[f.table] if f.table else -1, f.offset, i) for i, f in enumerate(self.fields)
        ]
        orders = [
            (self.unit.entries.index(one.entry), *one.grid, *one.block, one.shared_bytes)
            for one in self.launches
        ]
        seeds = [(run.seed, run.poison) for run in runs]
        counts = (len(buffers), len(pointers), len(orders), len(seeds), len(self.args))
        numbers = [*counts, *(n for row in (*buffers, *pointers, *orders, *seeds) for n in row)]
        contents = [
            np.ascontiguousarray(f.data, f.dtype).tobytes()
            for f in self.fields
            if f.data is not None
        ]
        parts = (np.array(numbers, np.int64).tobytes(), self.args, *contents)
        return b"".join(part + b"\0" * (-len(part) % 8) for part in parts)


@dataclass(frozen=True)
class Replayed:
    """What came of a job.

    Attributes:
        log: what the program and the sanitizers wrote to stderr.
        results: bytes of the outputs, run after run; fewer if it did not come to its end.
        program: the program.
    """

    log: str
    results: bytes
    program: bytes

    @property
    def complete(self) -> bool:
        """Whether every run came to its end. If not, the log says why."""
        return "\ntrtpatch:end\n" in self.log


def replay(
    job: Job, runs: Sequence[Run], recipe: Recipe, *, cubins: Cubins, timeout_s: float
) -> Replayed:
    """Build a unit's program and run a job with it.

    Args:
        job: what to run.
        runs: how, one after another.
        recipe: how to build the program.
        cubins: the cache.
        timeout_s: seconds until it is stopped.

    Raises:
        CompileError: the unit does not compile, or uses what the host cannot do.
    """
    program = build(job.unit, recipe, cubins).data
    with tempfile.TemporaryDirectory(prefix="trtpatch-") as name:
        folder = Path(name)
        (folder / "program").write_bytes(program)
        (folder / "program").chmod(0o700)
        (folder / "job").write_bytes(job.encode(runs))
        try:
            done = subprocess.run(
                [folder / "program", folder / "job", folder / "result"],
                env={**os.environ, **_sanitizer_options()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=timeout_s,
                check=False,
            )
            log = done.stderr
            if done.returncode not in (0, 1):  # 1: it has reported a fault
                log += f"\ntrtpatch:stopped {done.returncode}\n".encode()
        except subprocess.TimeoutExpired as late:
            log = (late.stderr or b"") + f"\ntrtpatch:timeout {timeout_s:g}\n".encode()
        result = folder / "result"
        results = result.read_bytes() if result.exists() else b""
        return Replayed(log.decode(errors="replace"), results, program)


def _sanitizer_options() -> dict[str, str]:
    # 2048 bytes of guard, the most there can be; all errors, not the first alone.
    asan = "halt_on_error=0:redzone=2048:detect_leaks=0:exitcode=0"
    options = {"ASAN_OPTIONS": asan, "UBSAN_OPTIONS": "print_stacktrace=1"}
    if is_clang(find_compiler()):  # gcc's runtime needs no help to name lines
        helper = shutil.which("llvm-symbolizer") or shutil.which("addr2line") or ""
        options["ASAN_OPTIONS"] += f":external_symbolizer_path={helper}"
    return options
