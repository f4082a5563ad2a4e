"""Patches against their references: every case, its own and made-up ones, on every executor.

A case passes on an executor where each output is within the contract's tolerance of the reference,
and where every further run gives the same bits: a second walk over the same buffers, other contents
in what the kernels should not read, other orders of blocks and threads.

Reading order: `cases` (a case bound to its contract); `checks` (one case on one executor), with
`comparison`, `host_sanitizer` and `compute_sanitizer`; `workers` (checks in processes);
`generated` (cases made up), with `forms`, `variations` and `contents`; and `summary`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trtpatch import executors
from trtpatch.catalog import Catalog, Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.errors import CompileError, TrtpatchError, VerifyError
from trtpatch.unit import make_unit
from trtpatch.verify.cases import POISON, Case, frame_of, load_cases, plan_case, run_case
from trtpatch.verify.checks import Check, Outcome, run_check
from trtpatch.verify.comparison import Difference, compare, in_order
from trtpatch.verify.generated import generate, is_generated, smallest
from trtpatch.verify.workers import Workers

__all__ = [
    "POISON", "Case", "Difference", "Effort", "Outcome", "compare", "frame_of", "in_order",
    "load_cases", "plan_case", "run_case", "verify",
]  # fmt: skip

Executor = Literal["host", "gpu"]
EXECUTORS: tuple[Executor, ...] = ("host", "gpu")


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    Attributes:
        shuffles: orders of blocks and threads on the host, beside the natural one.
        generated: cases that are made up for a patch, beside its own.
        seed: of what is made up.
        sanitize: whether to run under sanitizers as well.
        only: part of the names of the cases to run; empty for all.
        workers: cases that are looked at at once; one a core where it is 0.
        device: which GPU.
        timeout_s: seconds that a case may take on the host, the compiler's included.
    """

    shuffles: int = 4
    generated: int = 32
    seed: int = 0
    sanitize: bool = False
    only: str = ""
    workers: int = 0
    device: int = 0
    timeout_s: float = 60.0


def at_hand(executor: Executor) -> str:
    """Why an executor cannot run here; empty if it can."""
    if executor == "gpu":
        return "" if executors.gpu_found() else "no GPU, or no CuPy that sees it"
    from trtpatch.executors.host_compiler import find_compiler

    try:
        find_compiler()
    except CompileError as error:
        return str(error)
    return ""


def verify(
    patches: Sequence[Patch],
    names: Sequence[Executor] = EXECUTORS,
    *,
    effort: Effort = Effort(),
    cubins: Cubins | None = None,
    catalog: Catalog | None = None,
) -> Iterator[Outcome]:
    """Compare patches with their references.

    Args:
        patches: which.
        names: executors, `host` and `gpu`; one that is not at hand gives skipped outcomes.
        effort: how hard to look.
        cubins: the cache of compiled kernels; the user's own when not given.
        catalog: the patches that a patch's kind is compared with.

    Yields:
        One outcome for each case on each executor, as they are known; and first one for each patch
        in whose texts there are errors.

    Raises:
        VerifyError: no case has `effort.only` in its name.
    """
    cubins = cubins or Cubins()
    catalog = catalog or Catalog()
    checks: list[Check] = []
    for patch in patches:
        yield from _errors(patch, catalog)
        for one in _prepare(patch, effort):
            if isinstance(one, Outcome):
                yield one
            else:
                checks.append(one)
    checks = _wanted(checks, effort.only)
    for name in names:
        mine = [replace(check, where=name) for check in checks]
        reason = at_hand(name)
        if reason:
            yield from (check.outcome((), (), skipped=reason) for check in mine)
            if effort.sanitize:
                where = f"{name} sanitized"
                yield from (Outcome(p.name, "all cases", where, skipped=reason) for p in patches)
        elif name == "host":
            yield from _on_host(patches, mine, effort, cubins)
        else:
            yield from (run_check(check, cubins) for check in mine)
            if effort.sanitize:
                from trtpatch.verify.compute_sanitizer import sanitize_on_gpu

                for patch in patches:
                    yield from sanitize_on_gpu(patch, device=effort.device)


def _errors(patch: Patch, catalog: Catalog) -> Iterator[Outcome]:
    """The errors of the lint, such as a kernel that no GPU could start; cases tell their own."""
    from trtpatch.lint import lint  # which reads cases by this package

    remarks = lint(patch, catalog, compiled=False).remarks
    errors = [one for one in remarks if one.severity == "error" and one.rule != "case"]
    if errors:
        yield Outcome(patch.name, "trtpatch check", "all", faults=tuple(map(str, errors)))


def _prepare(patch: Patch, effort: Effort) -> Iterator[Check | Outcome]:
    """A patch's cases, its own and made-up ones, bound to its contract; or why not."""
    try:
        cases = load_cases(patch)
    except TrtpatchError as error:
        yield Outcome(patch.name, "cases.py", "all", faults=(str(error),))
        return
    plans = {}
    for case in cases:
        try:
            plans[case.name] = plan_case(patch, case)
        except TrtpatchError as error:
            yield Outcome(patch.name, case.name, "all", faults=(str(error),))
    cases = [case for case in cases if case.name in plans]
    if effort.generated:
        try:
            made = generate(patch, cases, count=effort.generated, seed=effort.seed)
            plans |= {case.name: plan_case(patch, case) for case in made}
            cases += made
        except ImportError as error:
            yield Outcome(patch.name, "generated cases", "all", skipped=str(error))
        except CompileError as error:
            yield Outcome(patch.name, "generated cases", "all", faults=(str(error),))
    for case in cases:
        yield Check(
            patch,
            case,
            plans[case.name],
            "host",
            shuffles=effort.shuffles,
            device=effort.device,
            timeout_s=effort.timeout_s,
        )


def _wanted(checks: list[Check], only: str) -> list[Check]:
    """Those with a text in the name of their case."""
    wanted = [check for check in checks if only in check.case.name]
    if checks and not wanted:
        lines = [f"no case has {only!r} in its name; there are:"]
        for patch in dict.fromkeys(check.patch.name for check in checks):
            mine = [check.case for check in checks if check.patch.name == patch]
            own = [repr(case.name) for case in mine if not is_generated(case)]
            lines.append(f"  {patch}: {', '.join(own)}")
        raise VerifyError("\n".join(lines))
    return wanted


def _on_host(
    patches: Sequence[Patch], checks: Sequence[Check], effort: Effort, cubins: Cubins
) -> Iterator[Outcome]:
    """All checks in several processes; those of one unit stay together, which is compiled once."""
    groups: dict[str, list[Check]] = {}
    for number, check in enumerate(checks):
        try:
            (step,) = check.plan.patch_steps
            key = make_unit(step).text
        except CompileError:  # the check will say so
            key = str(number)
        groups.setdefault(key, []).append(check)
    if effort.sanitize:
        for group in groups.values():
            group += [*_to_sanitize(group)]
    failed: set[tuple[str, str]] = set()
    ended: set[str] = set()
    with Workers(effort.workers or os.cpu_count() or 1, cubins) as workers:
        for outcome in workers.run([*groups.values()]):
            yield outcome
            if outcome.status == "failed" and outcome.executor == "host":
                failed.add((outcome.patch, outcome.case))
            if outcome.ends:
                ended.add(outcome.patch)
        if effort.sanitize:
            yield from workers.run([_failed_made(group, failed) for group in groups.values()])
        for patch in patches:
            if patch.name in ended:
                continue
            mine = [check.case for check in checks if check.patch is patch]
            own = [case for case in mine if not is_generated(case)]
            bad = {case for name, case in failed if name == patch.name}
            if bad and not bad & {case.name for case in own}:
                yield from _smallest(patch, own, effort, workers)


def _to_sanitize(group: Sequence[Check]) -> Iterator[Check]:
    """A patch's own cases, and the first made-up one of a unit: it takes a second for each."""
    made = 0
    for check in group:
        made += is_generated(check.case)
        if not is_generated(check.case) or made == 1:
            yield replace(check, where="host sanitized")


def _failed_made(group: Sequence[Check], failed: set[tuple[str, str]]) -> list[Check]:
    """The made-up cases of a unit that failed, to be sanitized if they were not."""
    sanitized = {check.case.name for check in group if check.where == "host sanitized"}
    return [
        replace(check, where="host sanitized")
        for check in group
        if check.case.name not in sanitized and (check.patch.name, check.case.name) in failed
    ]


def _smallest(
    patch: Patch, own: Sequence[Case], effort: Effort, workers: Workers
) -> Iterator[Outcome]:
    """Where only made-up cases fail: the smallest that can be found."""

    def run(case: Case) -> Outcome:
        plan, shuffles = plan_case(patch, case), effort.shuffles
        check = Check(patch, case, plan, "host", shuffles, timeout_s=effort.timeout_s)
        (outcome,) = workers.run([[check]])
        return outcome

    case = smallest(
        patch,
        own,
        lambda case: run(case).status == "failed",
        count=effort.generated,
        seed=effort.seed,
    )
    if case is not None:
        yield run(case)
