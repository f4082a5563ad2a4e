"""The disk cache of what was compiled: cubins, and the shared objects of the host executor.

An entry is one file, `<patch>-<target>-<16 digits of its key>.cubin`, as `trailer` writes it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtpatch.compiler.trailer import pack, unpack
from trtpatch.errors import CompileError
from trtpatch.keep import PART, keep

log = logging.getLogger(__name__)

MIB = 2**20

_SCHEMA = 1
_NAME = re.compile(r"(?P<label>.+)-[0-9a-f]{16}(?P<suffix>\.\w+)")
_ABANDONED_S = 3600


def cache_root() -> Path:
    """The folder of all that trtpatch keeps between runs; it may not exist yet.

    `TRTPATCH_CACHE` where set, otherwise `trtpatch` in `XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        OSError: nothing is set and the user has no home.
    """
    if chosen := os.environ.get("TRTPATCH_CACHE"):
        return Path(chosen).absolute()
    shared = os.environ.get("XDG_CACHE_HOME", "")
    if Path(shared).is_absolute():  # the XDG rule: a relative one counts as unset
        return Path(shared) / "trtpatch"
    try:
        return Path("~/.cache/trtpatch").expanduser()
    except RuntimeError as error:
        raise FileNotFoundError(str(error)) from error


def key_of(label: str, target: str, *parts: str) -> str:
    """The key of what `parts` compile to, `<label>-<target>-<64 hexadecimal digits>`.

    Args:
        label: for people who read the folder; the patch's name.
        target: what it runs on, `sm_90` or `host`.
        parts: all that decides the bytes: whole text, options, compiler and its version.
    """
    digest = hashlib.sha256()
    for part in (str(_SCHEMA), label, target, *parts):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return f"{re.sub(r'[^A-Za-z0-9_]+', '_', label)}-{target}-{digest.hexdigest()}"


@dataclass(frozen=True)
class Entry:
    """What the cache held under a key.

    Attributes:
        path: the file; its trailer does not disturb `dlopen` or the driver.
        data: the compiler's bytes, checked against the checksum.
        notes: what was given to `put`.
    """

    path: Path
    data: bytes
    notes: Mapping[str, Any]


@dataclass(frozen=True)
class Stored:
    """A file of the cache, as a list shows it.

    Attributes:
        path: the file.
        label: patch and target, `decode_mine-sm_90`.
        size_bytes: size on disk.
        used: when it was last written or read, in seconds since 1970.
    """

    path: Path
    label: str
    size_bytes: int
    used: float


class Cubins:
    """A folder of entries, private to its user because it holds code that will be run.

    Where the folder cannot be made or written, entries go to a temporary folder that lives as long
    as this object, and one warning says so.

    Attributes:
        hits, misses: calls of `get` that found an entry, and that did not.
    """

    def __init__(self, folder: Path | None = None, *, max_bytes: int = 512 * MIB) -> None:
        """Touches nothing before the first use.

        Args:
            folder: `kernels` in `cache_root()` when not given.
            max_bytes: the least recently used entries go when the folder grows beyond it.
        """
        self.hits = 0
        self.misses = 0
        self._wanted = folder
        self._max_bytes = max_bytes
        self._reading: list[Path] = []
        self._writing: Path | None = None
        self._opened = False
        self._fell_back = False

    def get(self, key: str, *, suffix: str = ".cubin") -> Entry | None:
        """The entry of that key; a broken one is dropped with a warning and counts as a miss.

        Raises:
            CompileError: the folder is not private to this user.
        """
        self._open()
        for folder in self._reading:
            path = folder / _file_name(key, suffix)
            try:
                entry = Entry(path, *unpack(path.read_bytes(), key))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                log.warning("%s is dropped, to be compiled again: %s", path, error)
                _remove(path)
                continue
            with suppress(OSError):
                os.utime(path)
            self.hits += 1
            return entry
        self.misses += 1
        return None

    def put(
        self, key: str, data: bytes, *, suffix: str = ".cubin", notes: Mapping[str, Any] = {}
    ) -> Path | None:
        """Keep `data` under `key`, at once or not at all.

        Args:
            key: from `key_of`.
            data: what the compiler gave.
            suffix: of the file's name.
            notes: whatever of JSON should come back with it.

        Returns:
            The file, or None where neither the folder nor a temporary one can be written.

        Raises:
            CompileError: the folder is not private to this user.
        """
        self._open()
        packed = pack(data, key, notes)
        while self._writing:
            path = self._writing / _file_name(key, suffix)
            try:
                keep(path, packed, mode=0o600)
            except OSError as error:
                self._fall_back(error)
            else:
                self._evict(path)
                return path
        return None

    def list(self) -> tuple[Stored, ...]:
        """Every entry, the most recently used first."""
        self._open()
        found = [stored for folder in self._reading for stored in _scan(folder)]
        return tuple(sorted(found, key=lambda stored: -stored.used))

    @property
    def folder(self) -> Path | None:
        """Where entries are written; None where nothing can be written."""
        self._open()
        return self._writing

    def _open(self) -> None:
        if self._opened:
            return
        try:
            folder = self._wanted or cache_root() / "kernels"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _refuse_unless_private(folder)
        except OSError as error:
            self._fall_back(error)
        else:
            self._writing = folder
            self._reading = [folder]
        self._opened = True

    def _fall_back(self, error: OSError) -> None:
        """From here on write to a temporary folder, or nowhere if that fails too."""
        self._writing = None
        if self._fell_back:
            return
        self._fell_back = True
        with suppress(OSError):
            self._writing = Path(tempfile.mkdtemp(prefix="trtpatch-"))  # 0700 by its contract
            self._reading = [*self._reading, self._writing]
            weakref.finalize(self, shutil.rmtree, self._writing, ignore_errors=True)
        log.warning(
            "the kernel cache cannot be used (%s): kernels are %s and compiled again by the next "
            "process. Set TRTPATCH_CACHE to a folder that can be written.",
            str(error),  # the error itself would keep this object alive in log records
            f"kept in {self._writing} meanwhile" if self._writing else "not kept",
        )

    def _evict(self, newest: Path) -> None:
        """Drop the least recently used entries beyond the size allowed, but never the newest."""
        stored = sorted(_scan(newest.parent), key=lambda one: one.used)
        excess = sum(one.size_bytes for one in stored) - self._max_bytes
        for one in stored:
            if excess <= 0:
                break
            if one.path != newest:
                _remove(one.path)
                excess -= one.size_bytes


def _file_name(key: str, suffix: str) -> str:
    label, _, digest = key.rpartition("-")
    return f"{label}-{digest[:16]}{suffix}"


def _remove(path: Path) -> None:
    with suppress(OSError):  # another process was faster, or the folder is read-only
        path.unlink()


def _scan(folder: Path) -> Iterator[Stored]:
    """The entries of a folder; what a killed process left half-written is removed on the way."""
    with suppress(FileNotFoundError), os.scandir(folder) as files:
        for file in files:
            match = _NAME.fullmatch(file.name)
            with suppress(OSError):  # files may vanish at any time
                status = file.stat()
                if match:
                    label = match["label"]
                    yield Stored(folder / file.name, label, status.st_size, status.st_mtime)
                elif file.name.endswith(PART) and time.time() - status.st_mtime > _ABANDONED_S:
                    Path(file).unlink()


def _refuse_unless_private(folder: Path) -> None:
    """Nobody else may have put code there.

    Raises:
        CompileError: it belongs to someone else, or others may write to it.
    """
    if not hasattr(os, "geteuid"):  # Windows: the user's profile is private
        return
    status = folder.stat()
    remedy = f"Run: chmod 700 {shlex.quote(str(folder))}"
    if status.st_uid != os.geteuid():
        found = f"belongs to user {status.st_uid}, not to user {os.geteuid()} who runs this"
        remedy = "Set TRTPATCH_CACHE to a folder of your own."
    elif status.st_mode & 0o022:
        found = f"can be written by others (mode {status.st_mode & 0o777:o})"
    else:
        return
    raise CompileError(f"{folder} {found}; it holds code that will be run. {remedy}")
