"""Looks for what a kernel does wrong without it showing in one run on one machine.

The unit is built as a program of its own with AddressSanitizer and UndefinedBehaviorSanitizer.
Every buffer is an allocation of its own with guard zones, and the launches run several times:

- with two different poisons in what was not written yet: an output that shows its poison was not
  written, and one that differs between the two was computed from something unwritten;
- with blocks and threads in other orders: an output that differs depends on the order.

A second program watches every access to memory, for races and reads of what was not written; see
`races`. g++ sees more than clang++, which has no guard zones between shared arrays and does not
check the alignment where a whole struct, such as a float4, is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from trtpatch.bits import Array, Mask, bytes_of, differ, first_index
from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.findings import Arrays, Field, Finding
from trtpatch.executors.host_compiler import SANITIZED
from trtpatch.executors.host_unit import check_launch
from trtpatch.executors.races import find_races
from trtpatch.executors.replay import Job, Run, replay
from trtpatch.executors.sanitizer_log import read_log
from trtpatch.plan import Launch
from trtpatch.unit import Unit

# Bytes. As numbers one is huge and positive, the other tiny and negative, in every type.
_POISONS = (0x7F, 0x81)


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
        timeout_s: seconds for each of the two programs, after which the kernel counts as hanging.

    Returns:
        What was found, each once; empty if nothing was.

    Raises:
        CompileError: the unit does not compile, or a launch is beyond what a GPU can do.
    """
    for launch in launches:
        check_launch(unit, launch)
    data = args if isinstance(args, bytes) else args.tobytes()
    job = Job(unit, tuple(launches), tuple(fields), data)
    runs = [Run(0, poison) for poison in _POISONS]
    runs += [Run(seed, _POISONS[0]) for seed in range(1, shuffles + 1)]
    replayed = replay(job, runs, SANITIZED, cubins=cubins, timeout_s=timeout_s)
    findings = list(read_log(replayed.log, job))
    if not replayed.complete and not findings:
        tail = "\n".join(replayed.log.splitlines()[-10:])
        findings.append(Finding("crash", launches[0].entry, "", 0, "", f"ended early:\n{tail}"))
    if not replayed.complete or any(finding.spoils_results for finding in findings):
        return tuple(dict.fromkeys(findings))
    outputs = [field for field in fields if field.role == "out"]
    size = sum(field.nbytes for field in outputs)
    results = replayed.results
    each = [meaning(_split(results[i * size :], outputs)) for i in range(len(runs))]
    findings += _compare(each, tuple(launch.entry for launch in launches))
    orders = [Run(seed, _POISONS[0]) for seed in range(min(shuffles, 2) + 1)]
    findings += find_races(job, orders, cubins=cubins, timeout_s=timeout_s)
    return tuple(dict.fromkeys(findings))


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
            where = first_index(unwritten)
            message = f"{count} of {array.size} elements are not written, the first is {where}"
            yield Finding("unwritten", entry, "", 0, name, message)
        others = differ(array, second[name]) & ~unwritten
        if count := int(others.sum()):
            where = first_index(others)
            message = (
                f"{count} of {array.size} elements depend on memory that was not written, the"
                f" first is {where}: scratch, another output or shared memory is read too early"
            )
            yield Finding("uninitialised", entry, "", 0, name, message)
        for seed, other in enumerate(runs[2:], start=1):
            others = differ(array, other[name]) & ~unwritten
            if count := int(others.sum()):
                where = first_index(others)
                message = (
                    f"{count} of {array.size} elements depend on the order of threads or blocks,"
                    f" the first is {where} (seed {seed}): a barrier is missing, or two threads"
                    " write one cell, or a variable is read before it has a value"
                )
                yield Finding("order", entry, "", 0, name, message)
                break


def _is_poison(array: Array, poison: int) -> Mask:
    mask: Mask = (bytes_of(array) == poison).all(-1)
    return mask
