"""How files are written: whole or not at all, under names that every system takes."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

PART = ".part"
"""How the name of a file ends that is not whole yet."""


def keep(path: Path, data: bytes, *, mode: int = 0o666) -> Path:
    """Write a file so that nobody ever sees a part of it; the last of several writers wins.

    A link is followed, and a device or a pipe is written to, where a rename would take its place.

    Args:
        path: the file; its folder is there.
        data: all of it.
        mode: who may read and write it, as far as the user's umask allows.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return path
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}{PART}")
    try:
        part.touch(mode, exist_ok=False)
        part.write_bytes(data)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def as_name(text: str) -> str:
    """Text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "unnamed"
