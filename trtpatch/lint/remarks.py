"""What the lint says of a patch, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtpatch.errors import Problem

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Remark:
    """One thing that is wrong, or likely to be.

    Attributes:
        rule: a short name of what was looked for.
        severity: of an error the patch does not work as its contract says; a warning may be meant.
        file, line, column: the place; line 0 where it is the file as a whole.
        message: what is wrong, and what to do.
    """

    rule: str
    severity: Severity
    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.severity}: {self.message} [{self.rule}]"


def at(problem: Problem, rule: str, severity: Severity = "error") -> Remark:
    """A mistake as a remark."""
    place = problem.file, problem.line, problem.column
    return Remark(rule, severity, *place, problem.message)
