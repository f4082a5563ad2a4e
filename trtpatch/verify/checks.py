"""One case of a patch on one executor: run, run again, compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from trtpatch import executors
from trtpatch.catalog import Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, TrtpatchError
from trtpatch.plan import ALIGNMENT, Plan
from trtpatch.verify.cases import POISON, Array, Case, fill, read_outputs
from trtpatch.verify.comparison import Difference, compare, in_order, other_bits
from trtpatch.verify.host_sanitizer import sanitize_case

if TYPE_CHECKING:
    from trtpatch.executors.host import HostExecutor

Where = Literal["host", "gpu", "host sanitized"]
Ends = Literal["", "compile", "hang"]

_POISONS = (POISON, 0x32)
_SHUFFLES_WATCHED = 2  # the others are tried without a sanitizer, ten times faster


@dataclass(frozen=True)
class Outcome:
    """One case on one executor.

    Attributes:
        executor: `host` or `gpu`, with ` sanitized` behind it where a sanitizer watched; `all`
            where the case could not be prepared.
        differences: from the reference, output by output.
        faults: what else is wrong.
        skipped: why it was not run; empty if it was.
        runs: how often the kernels ran.
        ends: where other cases of the patch would say the same: `compile` or `hang`.
    """

    patch: str
    case: str
    executor: str
    differences: tuple[Difference, ...] = ()
    faults: tuple[str, ...] = ()
    skipped: str = ""
    runs: int = 0
    seconds: float = 0.0
    ends: Ends = ""

    @property
    def wrong(self) -> tuple[str, ...]:
        """All that is wrong, in words."""
        return (*(str(one) for one in self.differences if one.wrong), *self.faults)

    @property
    def status(self) -> str:
        """`skipped`, `failed` or `passed`."""
        return "skipped" if self.skipped else "failed" if self.wrong else "passed"

    @property
    def passed(self) -> bool:
        """Whether it ran and nothing is wrong."""
        return self.status == "passed"


@dataclass(frozen=True)
class Check:
    """What to look at.

    Attributes:
        plan: of the patch, for the case.
        shuffles: orders of blocks and threads on the host, beside the natural one.
        device: which GPU.
        timeout_s: seconds on the host, of which a sanitized case has five times as many.
    """

    patch: Patch
    case: Case
    plan: Plan
    where: Where
    shuffles: int = 0
    device: int = 0
    timeout_s: float = 60.0

    @property
    def limit_s(self) -> float:
        """Seconds for all of it, the compiler's included."""
        return self.timeout_s * (5 if self.where == "host sanitized" else 1)

    def outcome(
        self,
        differences: tuple[Difference, ...],
        faults: Sequence[str],
        *,
        runs: int = 0,
        skipped: str = "",
        ends: Ends = "",
    ) -> Outcome:
        """An outcome of this check."""
        names = self.patch.name, self.case.name, self.where
        return Outcome(*names, differences, tuple(faults), skipped, runs, ends=ends)


def run_check(check: Check, cubins: Cubins) -> Outcome:
    """Look at one case.

    Args:
        check: which.
        cubins: the cache of compiled kernels.
    """
    look: dict[Where, Callable[[Check, Cubins], Outcome]] = {
        "host": _on_host,
        "gpu": _on_gpu,
        "host sanitized": _sanitized,
    }
    started = time.perf_counter()
    try:
        outcome = look[check.where](check, cubins)
    except TrtpatchError as error:
        # Without a place, it is a launch of this case alone that no GPU can do.
        broken = isinstance(error, CompileError) and error.problems
        outcome = check.outcome((), [str(error)], ends="compile" if broken else "")
    return replace(outcome, seconds=time.perf_counter() - started)


def _on_host(check: Check, cubins: Cubins) -> Outcome:
    from trtpatch.executors.host import HostExecutor

    expected, faults = _reference(check)
    with closing(HostExecutor(check.plan, None, cubins=cubins)) as walker:
        for guard in chain(*walker.guards.values()):
            guard[...] = POISON
        first = _run(walker, check, _POISONS[0])
        differences = compare(check.patch, first, expected)
        faults += [*_outside(walker, check.plan), *_again(walker, check, first)]
        for walker.seed in range(1, check.shuffles + 1):
            if faults:
                break
            shuffled = _run(walker, check, _POISONS[walker.seed % 2])
            faults += [
                f"depends on the order of blocks and threads (seed {walker.seed}), or on memory"
                f" or a variable that has no value yet: {one}"
                for one in other_bits(first, shuffled)
            ]
    return check.outcome(differences, faults, runs=2 + walker.seed)


def _on_gpu(check: Check, cubins: Cubins) -> Outcome:
    expected, faults = _reference(check)
    walker = executors.make_executor("gpu", check.plan, None, device=check.device, cubins=cubins)
    with closing(walker):
        first = _run(walker, check, _POISONS[0])
        differences = compare(check.patch, first, expected)
        faults += _again(walker, check, first)
        faults += [
            f"depends on memory that was not written, or on chance: {one}"
            for one in other_bits(first, _run(walker, check, _POISONS[1]))
        ]
    return check.outcome(differences, faults, runs=3)


def _sanitized(check: Check, cubins: Cubins) -> Outcome:
    shuffles = min(check.shuffles, _SHUFFLES_WATCHED)
    found = sanitize_case(
        check.case, check.plan, cubins=cubins, shuffles=shuffles, timeout_s=2 * check.timeout_s
    )
    hangs = any(finding.kind == "hang" for finding in found)
    ends: Ends = "hang" if hangs else ""
    return check.outcome((), list(map(str, found)), runs=2 + shuffles, ends=ends)


def _run(walker: executors.Executor, check: Check, poison: int) -> dict[str, Array]:
    fill(walker, check.plan, check.case, poison=poison)
    walker.walk()
    return in_order(read_outputs(walker, check.plan))


def _outside(walker: HostExecutor, plan: Plan) -> Iterator[str]:
    for tensor in (tensor for step in plan.patch_steps for tensor in step.tensors):
        for name in tensor.buffers:
            before, behind = (np.flatnonzero(guard != POISON) for guard in walker.guards[name])
            places = [
                f"{ALIGNMENT - 1 - at} bytes before the beginning of {tensor.name}"
                for at in before[-1:]
            ]
            places += [f"{at} bytes behind the end of {tensor.name}" for at in behind[:1]]
            for where in places:
                yield f"writes out of bounds, {where}; --sanitize says on which line"


def _again(walker: executors.Executor, check: Check, first: Mapping[str, Array]) -> list[str]:
    """A second walk over the same buffers, as a graph that is replayed."""
    walker.walk()
    again = in_order(read_outputs(walker, check.plan))
    return [f"differs in a second walk: {one}" for one in other_bits(first, again)]


def _reference(check: Check) -> tuple[dict[str, Array], list[str]]:
    """The reference's outputs, and what is wrong with the reference.

    Raises:
        VerifyError: there is none, or it does not run.
    """
    walker = executors.make_executor("cpu", check.plan, None)
    with closing(walker), np.errstate(all="ignore"):
        first, second = (_run(walker, check, poison) for poison in _POISONS)
    return first, [f"reference.py does not write all of {one}" for one in other_bits(first, second)]
