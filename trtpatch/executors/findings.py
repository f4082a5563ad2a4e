"""What a kernel does wrong, with its place, and the buffers that messages speak of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]
Place = tuple[str, int]
"""File and line."""


@dataclass(frozen=True)
class Finding:
    """One thing that a kernel does wrong.

    Attributes:
        kind: `out-of-bounds`, `alignment`, `null`, `division`, `undefined`, `divergence`, `mask`,
            `width`, `assert`, `trap`, `race`, `uninitialised`, `unwritten`, `order`, `hang` or
            `crash`.
        entry: the kernel; several where it cannot be told which.
        file, line: in the author's text; empty and 0 where there is no one place.
        buffer: its name; empty where none is concerned.
        message: what happens.
    """

    kind: str
    entry: str
    file: str
    line: int
    buffer: str
    message: str

    @property
    def spoils_results(self) -> bool:
        """Whether outputs mean nothing after it."""
        return self.kind in ("out-of-bounds", "hang", "crash")

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else ""
        buffer = f"{self.buffer}: " if self.buffer else ""
        return f"{place}{self.kind} in {self.entry}: {buffer}{self.message}"


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

    def describe(self, offset: int) -> str:
        """Where an offset in bytes lies, in elements."""
        element = offset // self.dtype.itemsize
        count = self.nbytes // self.dtype.itemsize
        return f"element {element} of {self.dtype.name} {list(self.shape)}, {count} elements"


def author_files(text: str) -> str:
    """A pattern for the names that a unit's text gives to its parts."""
    files = sorted(set(re.findall(r'(?m)^#line \d+ "(.*)"$', text)), key=len, reverse=True)
    return "|".join(map(re.escape, files)) or "(?!)"


def place_of(frames: Sequence[Place]) -> tuple[Place, str]:
    """The line to show for a chain of calls: the innermost one in the entry's own file.

    Args:
        frames: the calls in the author's text, the innermost first; not empty.

    Returns:
        The place, and what to add to a message about the others.
    """
    place = next(frame for frame in frames if frame[0] == frames[-1][0])
    around = [f"{file}:{line}" for file, line in frames if (file, line) != place]
    return place, f" (by way of {', '.join(around)})" if around else ""
