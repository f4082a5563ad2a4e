"""Files that commands write: refused before the work where they cannot be, or are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from os.path import realpath
from pathlib import Path

from trtpatch.errors import InputError


def free(target: str | Path, taken: Iterable[str | Path] = ()) -> str:
    """The real path of a file that is to be written.

    Args:
        target: the file.
        taken: files that are read, or written otherwise.

    Raises:
        InputError: it cannot be written, or is taken.
    """
    file = Path(realpath(target))
    with writing(target):
        if not file.parent.is_dir():
            raise InputError(f"{target}: cannot be written: there is no such folder")
        if file.is_dir():
            raise InputError(f"{target}: cannot be written: Is a directory")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise InputError(f"{target}: cannot be written: Permission denied")
        anything = file.exists() and not file.is_file()  # /dev/null takes it
    if not anything and str(file) in _real(taken):
        raise InputError(
            f"{target}: would overwrite a file that this run reads or writes; name another"
        )
    return str(file)


def _real(paths: Iterable[str | Path]) -> Collection[str]:
    return set(map(realpath, paths))


@contextmanager
def writing(target: str | Path) -> Iterator[None]:
    """Name the file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None
