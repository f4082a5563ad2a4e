"""`trtpatch verify`: patches run and compared with their references."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtpatch.cli.files import File
from trtpatch.cli.registries import registries

if TYPE_CHECKING:
    from trtpatch.verify import Outcome

_FAILED, _NOTHING_RAN = 1, 2
_SHOWN = 5
"""Failing cases that are shown of a patch on an executor."""
_NUMBER = re.compile(r"(?<![:\w.])-?\d[\w.+]*")
"""In a fault: what differs from case to case. A line in a file is none of them."""


@click.command()
@click.argument("patches", metavar="[PATCH]...", nargs=-1)
@click.option(
    "--executor",
    type=click.Choice(["host", "gpu", "all"]),
    default="all",
    help="Who runs the kernels. Of all, those that are not at hand are counted as skipped.",
)
@click.option(
    "--shuffle",
    metavar="N",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Orders of blocks and threads to try on the host, beside the natural one.",
)
@click.option(
    "--generate",
    metavar="N",
    type=click.IntRange(min=0),
    default=32,
    show_default=True,
    help="Cases to make up for each patch, beside its own; this takes hypothesis.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is made up.")
@click.option(
    "--sanitize",
    is_flag=True,
    help="Also run under Address- and UndefinedBehaviorSanitizer and look for races on the host,"
    " and under compute-sanitizer on a GPU: a patch's own cases, and on the host one made-up case"
    " of each form and all that fail.",
)
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=1),
    default=60,
    show_default=True,
    help="Seconds for a case on the host, its compilation included; five times as many sanitized.",
)
@click.option("--case", "only", metavar="TEXT", default="", help="Only cases with it in the name.")
@registries
@click.option("--device", default=0, help="Which GPU.")
@click.option("--jobs", type=click.IntRange(min=0), default=0, help="At once; 0 is one a core.")
@click.option("--json", "as_json", is_flag=True, help="Print every outcome as JSON.")
@click.option("--junit", type=File(), metavar="FILE", help="Write JUnit's XML to a file.")
@click.pass_context
def command(
    ctx: click.Context,
    patches: tuple[str, ...],
    executor: str,
    registries: tuple[Path, ...],
    as_json: bool,
    junit: Path | None,
    shuffle: int,
    generate: int,
    seed: int,
    sanitize: bool,
    timeout: float,
    only: str,
    device: int,
    jobs: int,
) -> None:
    """Compare the kernels of each PATCH with its reference.

    A PATCH is a name or a folder; without one, all patches are looked at. Every case of cases.py
    and every made-up one must be within the contract's tolerances, and give the same bits in every
    run and in every order of blocks and threads.

    Ends with code 1 where a case fails, and with code 2 where nothing could be run.
    """
    from trtpatch.catalog import Catalog
    from trtpatch.cli import tables
    from trtpatch.cli.registries import find_patch
    from trtpatch.targets import free, writing
    from trtpatch.verify import EXECUTORS, Effort, summary, verify

    if junit is not None:
        free(junit)
    catalog = Catalog(registries)
    chosen = [find_patch(catalog, name) for name in patches or catalog.names]
    names = [name for name in EXECUTORS if executor in (name, "all")]
    how = Effort(
        shuffles=shuffle,
        generated=generate,
        seed=seed,
        sanitize=sanitize,
        only=only,
        workers=jobs,
        device=device,
        timeout_s=timeout,
    )
    outcomes: list[Outcome] = []
    with _progress() as show:
        for outcome in verify(chosen, names, effort=how, catalog=catalog):
            outcomes.append(outcome)
            show(outcome, len(outcomes))
    if as_json:
        tables.echo_json(summary.plain(outcomes))
    else:
        _show(outcomes, sanitized=sanitize)
    if junit is not None:
        with writing(junit):
            junit.write_bytes(summary.junit(outcomes))
    ran = [outcome for outcome in outcomes if not outcome.skipped]
    if any(not outcome.passed for outcome in ran):
        ctx.exit(_FAILED)
    if not ran:
        reasons = dict.fromkeys(outcome.skipped for outcome in outcomes)
        click.echo(f"error: nothing was run: {'; '.join(reasons) or 'no case'}", err=True)
        ctx.exit(_NOTHING_RAN)


@contextmanager
def _progress() -> Iterator[Any]:
    """Shows on a terminal's standard error what was done last."""
    shown = sys.stderr.isatty()

    def show(outcome: Outcome, count: int) -> None:
        if shown:
            click.echo(f"\r\033[K{count} {outcome.patch}, {outcome.executor}", nl=False, err=True)

    try:
        yield show
    finally:
        if shown:
            click.echo("\r\033[K", nl=False, err=True)


def _show(outcomes: Sequence[Outcome], *, sanitized: bool) -> None:
    from trtpatch.cli import tables
    from trtpatch.verify import summary

    rows = summary.summarise(outcomes)
    ran = [row for row in rows if row.passed or row.failed]
    counts = (">passed", ">failed", ">skipped", ">runs")
    tables.echo_table(
        ("patch", "on", *counts, "largest difference", ">seconds"),
        [
            (
                row.patch,
                row.executor,
                row.passed,
                row.failed or "",
                row.skipped or "",
                row.runs or "",
                f"{row.largest:.1e} {row.field}" if row.field else "",
                f"{row.seconds:.1f}",
            )
            for row in ran
        ],
    )
    failed = [one for one in outcomes if one.status == "failed"]
    _show_faults([one for one in failed if not one.differences])
    for row in ran:
        place = row.patch, row.executor
        compared = [one for one in failed if one.differences]
        _show_failures([one for one in compared if (one.patch, one.executor) == place])
    reasons: dict[str, int] = {}
    for outcome in outcomes:
        if outcome.skipped:
            what = f"{outcome.executor}: {outcome.skipped}"
            reasons[what] = reasons.get(what, 0) + 1
    click.echo()
    for reason, count in reasons.items():
        click.echo(f"skipped {count} on {reason}")
    totals = [sum(getattr(row, what) for row in rows) for what in ("passed", "failed", "skipped")]
    click.echo("{} passed, {} failed, {} skipped".format(*totals))
    if ran and not sanitized:
        click.echo(
            "not looked for: races, reads out of bounds, and writes far outside (--sanitize)"
        )


def _show_faults(failed: Sequence[Outcome]) -> None:
    """What ended a run or a sanitizer found, each once: what these cases gave means little."""
    from trtpatch.cli import tables

    for place in sorted(
        dict.fromkeys((one.patch, one.executor) for one in failed),
        key=lambda place: place[1] == "host",  # a sanitizer says more
    ):
        tables.echo_title(f"\n{' on '.join(place)}")
        told: dict[str, tuple[str, list[str]]] = {}
        for outcome in failed:
            if (outcome.patch, outcome.executor) == place:
                for line in outcome.wrong:
                    _, cases = told.setdefault(_NUMBER.sub("#", line), (line, []))
                    cases.append(outcome.case)
        for line, cases in told.values():
            others = len(set(cases)) - 1
            more = f", and {others} more case{'s' * (others > 1)}" if others else ""
            click.echo(f"  {line}\n    in {cases[0]!r}{more}")


def _show_failures(failed: Sequence[Outcome]) -> None:
    from trtpatch.cli import tables

    for outcome in failed[:_SHOWN]:
        tables.echo_title(f"\n{outcome.patch} on {outcome.executor}: {outcome.case}")
        for line in outcome.wrong:
            click.echo(f"  {line}")
    if len(failed) > _SHOWN:
        click.echo(f"\n  and {len(failed) - _SHOWN} more cases; --json lists them all")
