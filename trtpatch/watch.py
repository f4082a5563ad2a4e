"""Waiting for an edit of what a running pipeline is made of.

By the library `watchfiles`: it asks the system to be woken, knows the litter that editors leave,
and looks at the files itself where the system tells nothing (network folders, containers).
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trtpatch.errors import InputError
from trtpatch.extras import install

_PERIOD_MS = 200
_TICK_S = 0.02  # the times of files may lag behind the clock by so much


def needs_watchfiles() -> None:
    """Say so where watchfiles is not installed.

    Raises:
        InputError: it is not.
    """
    if importlib.util.find_spec("watchfiles") is None:
        raise InputError(f"watching files needs the library watchfiles: {install('watch')}")


def edits(sources: Callable[[], Sequence[Path]], *, since: float) -> Iterator[tuple[Path, ...]]:
    """Wait for edits, for ever.

    Args:
        sources: gives the files and folders of patches that matter now; asked again after each
            edit. Of a folder all that is in it matters, however deep.
        since: edits from this time on count, in seconds since 1970, also those made before the
            first is asked for.

    Yields:
        The files that were edited, made or removed, sorted. What is done meanwhile is not missed.
    """
    while True:
        watched = _Watched(sources())
        changes = _changes(watched)
        found = next(changes) | set(watched.edited_since(since))
        while True:
            if found:
                since = time.time()
                yield tuple(sorted(found))
                if _Watched(sources()).folders != watched.folders:
                    break
            found = next(changes)


def _changes(watched: _Watched) -> Iterator[set[Path]]:
    """What changed in each period; watched from the first on."""
    import watchfiles

    litter = watchfiles.DefaultFilter(ignore_dirs=("__pycache__",))
    for changes in watchfiles.watch(
        *watched.folders,
        watch_filter=lambda change, path: watched.has(Path(path)) and litter(change, path),
        recursive=False,  # a pipeline file may lie above a large tree
        rust_timeout=_PERIOD_MS,
        yield_on_timeout=True,
    ):
        yield {Path(path) for _, path in changes}


class _Watched:
    """What is watched: single files by the folder that they lie in, and folders with all in them.

    A file is not watched by itself: editors put a new file in the place of the old one.
    """

    def __init__(self, sources: Sequence[Path]) -> None:
        real = [path.resolve() for path in sources]
        self._trees = {folder for path in real if path.is_dir() for folder in _tree(path)}
        self._files = {path for path in real if not path.is_dir()}
        holders = {path.parent for path in self._files if path.parent.is_dir()}
        self.folders = tuple(sorted(self._trees | holders))

    def has(self, path: Path) -> bool:
        """Whether a file or a folder matters; a file without an ending is an editor's own."""
        inside = path.parent in self._trees and (path.suffix != "" or path.is_dir())
        return inside or path in self._files

    def edited_since(self, since: float) -> Iterator[Path]:
        """The files whose content is of that time or later."""
        inside = (path for folder in self._trees for path in folder.iterdir() if path.is_file())
        for path in (*self._files, *inside):
            if self.has(path) and path.exists() and path.stat().st_mtime >= since - _TICK_S:
                yield path


def _tree(folder: Path) -> Iterator[Path]:
    """A folder and those in it, but for hidden ones and caches."""
    yield folder
    for inner in folder.iterdir():
        if inner.is_dir() and not inner.name.startswith((".", "__")):
            yield from _tree(inner)
