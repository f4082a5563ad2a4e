"""What trtpatch keeps on disk between runs: compiled kernels and built engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trtpatch.compiler.cubins import Cubins, cache_root
from trtpatch.compiler.trailer import notes_of

Cache = Literal["kernels", "engines"]
CACHES: tuple[Cache, ...] = ("kernels", "engines")

_VERSION = r"(?P<version>\d+(?:\.\d+){2,})"
_PLAN = re.compile(
    rf"(?P<name>.+)-(?P<module>tensorrt\w*)-{_VERSION}-(?P<target>.+)-[0-9a-f]{{16}}"
)
_KERNELS = re.compile(rf"(?P<name>.+)-{_VERSION}-(?P<target>.+)-[0-9a-f]{{16}}")


@dataclass(frozen=True)
class Kept:
    """One file of a cache.

    Attributes:
        cache: which one.
        name: of the patch, or of the engine's file.
        target: what it runs on: `sm_90`, `host`, a GPU's name, or `any`.
        made_by: compiler or TensorRT, with its version; empty where the file does not say.
        size_bytes: on disk.
        used: when it was last read or written, in seconds since 1970.
        path: the file.
    """

    cache: Cache
    name: str
    target: str
    made_by: str
    size_bytes: int
    used: float
    path: Path


def kept(caches: Sequence[Cache] = CACHES) -> list[Kept]:
    """All files of the caches, the most recently used first.

    Raises:
        CompileError: the kernels' folder is not private to this user.
    """
    found: list[Kept] = []
    if "kernels" in caches:
        found += _kernels()
    if "engines" in caches:
        found += _engines()
    return sorted(found, key=lambda one: -one.used)


def clear(caches: Sequence[Cache] = CACHES) -> list[Kept]:
    """Remove all files of the caches; those that were removed.

    Raises:
        CompileError: the kernels' folder is not private to this user.
    """
    removed = []
    for one in kept(caches):
        with suppress(OSError):  # another process was faster, or the folder is read-only
            one.path.unlink()
            removed.append(one)
    return removed


def _kernels() -> Iterator[Kept]:
    for stored in Cubins().list():
        name, _, target = stored.label.rpartition("-")
        made_by = str(notes_of(stored.path).get("compiler", ""))
        yield Kept("kernels", name, target, made_by, stored.size_bytes, stored.used, stored.path)


def _engines() -> Iterator[Kept]:
    try:
        files = sorted((cache_root() / "engines").iterdir())
    except OSError:  # nothing was kept, or the user has no home
        return
    for path in files:
        compiled = path.suffix == ".kernels"  # by TensorRT-RTX, for a plan
        match = (_KERNELS if compiled else _PLAN).fullmatch(path.stem)
        if not match or path.suffix not in (".plan", ".kernels"):
            continue
        plan = _PLAN.fullmatch(match["name"]) if compiled else None
        name = plan["name"] if plan else match["name"]
        module = "tensorrt_rtx" if compiled else match["module"]
        with suppress(OSError):  # files may vanish at any time
            status = path.stat()
            yield Kept(
                cache="engines",
                name=f"{name}, compiled" if compiled else name,
                target=match["target"],
                made_by=f"{module} {match['version']}",
                size_bytes=status.st_size,
                used=max(status.st_atime, status.st_mtime),
                path=path,
            )
