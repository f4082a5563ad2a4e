"""The errors that trtpatch raises: each says where, what was expected and found, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class TrtpatchError(Exception):
    """Base of every error that a user can cause. The CLI prints it and exits with code 2."""


class Problem(NamedTuple):
    """One mistake in a file.

    Attributes:
        file: path as the user gave it, or as it was found.
        line, column: counted from 1; 0 where the place is the file as a whole.
        message: what is wrong, what was expected, what to do.
    """

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place}: {self.message}"


class SpecError(TrtpatchError):
    """A contract, registry or pipeline file has mistakes; `problems` has them one by one.

    The message shows the first `MOST_SHOWN`.
    """

    MOST_SHOWN = 20

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        lines = [str(problem) for problem in problems[: self.MOST_SHOWN]]
        more = ["and more mistakes"] if len(problems) > self.MOST_SHOWN else []
        super().__init__("\n".join(lines + more))


class MatchError(TrtpatchError):
    """No rule, or more than one, fits an engine; or a patch's contract does not fit its tensors."""


class EngineError(TrtpatchError):
    """An engine cannot be read, built or run."""


class CompileError(TrtpatchError):
    """A patch's CUDA text does not compile, or does not fit the device.

    Attributes:
        problems: each mistake in the author's files with its place; empty where the mistake is not
            in a file.
    """

    def __init__(self, message: str, *, problems: Sequence[Problem] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([message, *map(str, self.problems)]))


class CaptureError(TrtpatchError):
    """A chain cannot be captured in a CUDA Graph."""


class VerifyError(TrtpatchError):
    """A patch and its reference disagree, or a Python file of a patch does not run.

    Attributes:
        line: of the file that the message begins with; 0 where it has none.
    """

    def __init__(self, message: str, *, line: int = 0) -> None:
        self.line = line
        super().__init__(message)


class InputError(TrtpatchError):
    """A frame, image file or output path that the user gave cannot be used."""
