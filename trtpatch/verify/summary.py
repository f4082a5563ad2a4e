"""Outcomes counted up, and written down for machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.etree import ElementTree

from trtpatch.verify.checks import Outcome


@dataclass(frozen=True)
class Row:
    """All cases of a patch on an executor.

    Attributes:
        largest: the largest absolute difference from the reference that was found.
        field: the output that has it; empty where there is no difference.
        seconds: of all cases, one after the other.
    """

    patch: str
    executor: str
    passed: int
    failed: int
    skipped: int
    runs: int
    largest: float
    field: str
    seconds: float


def summarise(outcomes: Iterable[Outcome]) -> list[Row]:
    """One row a patch and executor, in the order in which they first come."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.patch, outcome.executor), []).append(outcome)
    return [_row(*names, group) for names, group in groups.items()]


def _row(patch: str, executor: str, group: Sequence[Outcome]) -> Row:
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for outcome in group:
        counts[outcome.status] += 1
    differences = [one for outcome in group for one in outcome.differences if one.largest > 0]
    worst = max(differences, key=lambda one: one.largest, default=None)
    return Row(
        patch,
        executor,
        **counts,
        runs=sum(outcome.runs for outcome in group),
        largest=worst.largest if worst else 0.0,
        field=worst.field if worst else "",
        seconds=sum(outcome.seconds for outcome in group),
    )


def plain(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All of it as JSON has it."""
    each = [{**asdict(one), "status": one.status, "wrong": one.wrong} for one in outcomes]
    return {"summary": [asdict(row) for row in summarise(outcomes)], "outcomes": each}


def junit(outcomes: Sequence[Outcome]) -> bytes:
    """JUnit's XML: a suite for each patch and executor, a test case for each case."""
    root = ElementTree.Element("testsuites")
    for row in summarise(outcomes):
        mine = [one for one in outcomes if (one.patch, one.executor) == (row.patch, row.executor)]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"{row.patch} on {row.executor}",
            tests=str(len(mine)),
            failures=str(row.failed),
            errors="0",
            skipped=str(row.skipped),
            time=f"{row.seconds:.3f}",
        )
        for outcome in mine:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=f"{row.patch}.{row.executor}",
                name=outcome.case,
                time=f"{outcome.seconds:.3f}",
            )
            if outcome.skipped:
                ElementTree.SubElement(case, "skipped", message=_clean(outcome.skipped))
            elif outcome.wrong:
                failure = ElementTree.SubElement(case, "failure", message=_clean(outcome.wrong[0]))
                failure.text = _clean("\n".join(outcome.wrong))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _clean(text: str) -> str:
    """Text without the control characters that XML cannot hold."""
    return "".join(one if one in "\n\t" or one >= " " else "?" for one in text)
