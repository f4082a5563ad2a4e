"""Looks for what a kernel does wrong without it showing in one run on one machine.

The unit is built as a program of its own with AddressSanitizer and UndefinedBehaviorSanitizer.
Every buffer is an allocation of its own with guard zones, and the launches run several times:

- with two different poisons in what was not written yet: an output that shows its poison was not
  written, and one that differs between the two was computed from something unwritten;
- with blocks and threads in other orders: an output that differs depends on the order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trtpatch.cubins import Cubins
from trtpatch.executors.host_compiler import (
    SANITIZED,
    Recipe,
    build,
    find_compiler,
    is_clang,
)
from trtpatch.executors.host_unit import check_launch
from trtpatch.executors.sanitizer_log import Finding, Placed, read_log
from trtpatch.plan import Launch
from trtpatch.unit import Unit

Array = np.ndarray[Any, Any]
Mask = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]

# Bytes. As numbers one is huge and positive, the other tiny and negative, in every type.
_POISONS = (0x7F, 0x81)


@dataclass(frozen=True)
class Field:
    """A buffer that the kernels see.

    Attributes:
        name: of the member of `Args` that points to it, for messages.
        offset: bytes from the start of `Args`, or of `table`, to its address.
        dtype, shape: of the buffer.
        role: `out` is compared and must be written; `scratch` may be written.
        data: what it holds at the start; poison where not given. An output that is cleared before
            the launches has zeros here.
        table: the field whose memory holds the address of this one; empty for `Args`.
    """

    name: str
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    role: Literal["in", "out", "scratch"]
    data: Array | None = None
    table: str = ""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


def sanitize(
    unit: Unit,
    launches: Sequence[Launch],
    fields: Sequence[Field],
    *,
    args: Array | np.void | bytes,
    cubins: Cubins,
    shuffles: int = 8,
    meaning: Callable[[Arrays], Arrays] = lambda outputs: outputs,
    timeout_s: float = 120.0,
) -> tuple[Finding, ...]:
    """Run launches under both sanitizers, with two poisons and in several orders.

    Args:
        unit: what to build.
        launches: in their order.
        fields: every buffer that the kernels reach.
        args: the bytes of `struct Args`; its addresses are filled in here.
        cubins: the cache.
        shuffles: how many other orders of blocks and threads to try.
        meaning: takes the outputs of a run by name to what of them counts, in one order: rows that
            are appended in any order sorted, rows past a count blanked.
        timeout_s: seconds for all runs, after which the kernel counts as hanging.

    Returns:
        What was found, each once; empty if nothing was.

    Raises:
        CompileError: the unit does not compile, or a launch is beyond what a GPU can do.
    """
    for launch in launches:
        check_launch(unit, launch)
    runs = [(0, _POISONS[0]), (0, _POISONS[1])]
    runs += [(seed, _POISONS[0]) for seed in range(1, shuffles + 1)]
    job = _job(unit, launches, fields, runs, args if isinstance(args, bytes) else args.tobytes())
    log, results = _replay(unit, SANITIZED, job, cubins, timeout_s)
    placed = tuple(Placed(f.name, f.dtype, f.shape, f.nbytes) for f in fields)
    entries = tuple(launch.entry for launch in launches)
    findings = list(read_log(log, unit, entries, placed))
    outputs = [field for field in fields if field.role == "out"]
    size = sum(field.nbytes for field in outputs)
    if len(results) == size * len(runs) and not any(f.spoils_results for f in findings):
        each = [meaning(_split(results[i * size :], outputs)) for i in range(len(runs))]
        findings += _compare(each, entries)
    return tuple(dict.fromkeys(findings))


def _job(
    unit: Unit,
    launches: Sequence[Launch],
    fields: Sequence[Field],
    runs: Sequence[tuple[int, int]],
    args: bytes,
) -> bytes:
    """The file that host_cuda/replay.h reads."""
    index = {field.name: i for i, field in enumerate(fields)}
    buffers = [(f.nbytes, f.role == "out", f.data is not None) for f in fields]
    pointers = [(index[f.table] if f.table else -1, f.offset, i) for i, f in enumerate(fields)]
    orders = [
        (unit.entries.index(one.entry), *one.grid, *one.block, one.shared_bytes) for one in launches
    ]
    counts = (len(buffers), len(pointers), len(orders), len(runs), len(args))
    numbers = [*counts, *(n for row in (*buffers, *pointers, *orders, *runs) for n in row)]
    contents = [
        np.ascontiguousarray(f.data, f.dtype).tobytes() for f in fields if f.data is not None
    ]
    return b"".join(
        _padded(part) for part in (np.array(numbers, np.int64).tobytes(), args, *contents)
    )


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)


def _replay(
    unit: Unit, recipe: Recipe, job: bytes, cubins: Cubins, timeout_s: float
) -> tuple[str, bytes]:
    """Run the program; its messages, and the outputs of all runs that came to their end."""
    program, _ = build(unit, recipe, cubins)
    with tempfile.TemporaryDirectory(prefix="trtpatch-") as name:
        folder = Path(name)
        (folder / "program").write_bytes(program)
        (folder / "program").chmod(0o700)
        (folder / "job").write_bytes(job)
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
            if done.returncode < 0:
                log += f"\ntrtpatch:killed {-done.returncode}\n".encode()
        except subprocess.TimeoutExpired as late:
            log = (late.stderr or b"") + f"\ntrtpatch:timeout {timeout_s:g}\n".encode()
        result = folder / "result"
        return log.decode(errors="replace"), result.read_bytes() if result.exists() else b""


def _sanitizer_options() -> dict[str, str]:
    # 2048 bytes of guard, the most there can be; all errors, not the first alone.
    asan = "halt_on_error=0:redzone=2048:detect_leaks=0:exitcode=0"
    options = {"ASAN_OPTIONS": asan, "UBSAN_OPTIONS": "print_stacktrace=1"}
    if is_clang(find_compiler()):  # gcc's runtime needs no help to name lines
        helper = shutil.which("llvm-symbolizer") or shutil.which("addr2line") or ""
        options["ASAN_OPTIONS"] += f":external_symbolizer_path={helper}"
    return options


def _split(data: bytes, outputs: Sequence[Field]) -> dict[str, Array]:
    arrays, at = {}, 0
    for field in outputs:
        count = field.nbytes // field.dtype.itemsize
        array = np.frombuffer(data, field.dtype, count, at)
        arrays[field.name] = array.reshape(field.shape)
        at += field.nbytes
    return arrays


def _compare(runs: Sequence[Arrays], entries: tuple[str, ...]) -> Iterator[Finding]:
    """What the outputs of the runs tell: two poisons first, then other orders."""
    entry = " + ".join(dict.fromkeys(entries))
    first, second = runs[:2]
    for name, array in first.items():
        unwritten = _is_poison(array, _POISONS[0]) & _is_poison(second[name], _POISONS[1])
        if count := int(unwritten.sum()):
            where = _first_index(unwritten)
            message = f"{count} of {array.size} elements are not written, the first is {where}"
            yield Finding("unwritten", entry, "", 0, name, message)
        differ = _differ(array, second[name]) & ~unwritten
        if count := int(differ.sum()):
            where = _first_index(differ)
            message = (
                f"{count} of {array.size} elements depend on memory that was not written, the"
                f" first is {where}: scratch, another output or shared memory is read too early"
            )
            yield Finding("uninitialised", entry, "", 0, name, message)
        for seed, other in enumerate(runs[2:], start=1):
            differ = _differ(array, other[name]) & ~unwritten
            if count := int(differ.sum()):
                where = _first_index(differ)
                message = (
                    f"{count} of {array.size} elements depend on the order of threads or blocks,"
                    f" the first is {where} (seed {seed}): a barrier is missing, or two threads"
                    " write one cell"
                )
                yield Finding("order", entry, "", 0, name, message)
                break


def _is_poison(array: Array, poison: int) -> Mask:
    mask: Mask = (_bytes_of(array) == poison).all(-1)
    return mask


def _differ(a: Array, b: Array) -> Mask:
    """Where the bits differ; a NaN equals the same NaN."""
    mask: Mask = (_bytes_of(a) != _bytes_of(b)).any(-1)
    return mask


def _bytes_of(array: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`[..., bytes of an element]`."""
    return np.ascontiguousarray(array)[..., np.newaxis].view(np.uint8)


def _first_index(mask: Mask) -> str:
    return str([int(i) for i in np.argwhere(mask)[0]])
