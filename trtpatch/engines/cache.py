"""The folder of built plans and of what TensorRT-RTX compiled."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from trtpatch.compiler.cubins import cache_root
from trtpatch.errors import EngineError

_log = logging.getLogger("trtpatch.engines")


def engine_cache(folder: Path | None = None) -> Path:
    """The folder, made if need be: `engines` in the user's cache where none is given.

    Where it cannot be made or written, a private temporary folder stands in, with one warning.
    """
    wanted = folder
    try:
        wanted = folder or cache_root() / "engines"
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            return wanted
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
        private = _private_folder()
        _log.warning("%s cannot be used (%s); engines are kept in %s", wanted, error, private)
        return private


def _private_folder() -> Path:
    """A folder among the temporary ones that nobody else can have filled."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"trtpatch-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    state = folder.lstat()
    if hasattr(os, "getuid") and (folder.is_symlink() or state.st_uid != user):
        raise EngineError(f"{folder} belongs to somebody else; set TRTPATCH_CACHE to a folder")
    return folder
