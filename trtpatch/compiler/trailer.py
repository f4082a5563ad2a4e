"""An entry of the cache as one file.

The compiler's bytes come first and untouched, so NVIDIA's tools, the driver and `dlopen` read the
file as it lies; a trailer after them holds the whole key, notes and a checksum. One file means that
an entry is there as a whole or not at all: processes that compile the same kernel at once leave one
good entry, whoever comes last.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MAGIC = b"trtpatch"
_TAIL = struct.Struct("<32sI8s")  # SHA-256 of all before it, bytes of the notes, magic


def pack(data: bytes, key: str, notes: Mapping[str, Any]) -> bytes:
    """The file's bytes: data, notes and checksum."""
    text = json.dumps({"key": key, "notes": notes}).encode()
    checksum = hashlib.sha256(data + text).digest()
    return data + text + _TAIL.pack(checksum, len(text), _MAGIC)


def unpack(packed: bytes, key: str) -> tuple[bytes, Mapping[str, Any]]:
    """The data and the notes.

    Raises:
        ValueError: it is truncated or altered, or belongs to another key.
    """
    if len(packed) < _TAIL.size or not packed.endswith(_MAGIC):
        raise ValueError("it is truncated, or no entry of this cache")
    checksum, length, _ = _TAIL.unpack(packed[-_TAIL.size :])
    body = packed[: -_TAIL.size]
    if hashlib.sha256(body).digest() != checksum:
        raise ValueError("its checksum is wrong")
    at = len(body) - length
    trailer = json.loads(body[at:])
    if trailer["key"] != key:
        raise ValueError("it belongs to another key")
    return body[:at], trailer["notes"]


def notes_of(path: Path) -> Mapping[str, Any]:
    """The notes of an entry, read from the end of its file; empty where it is broken."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(end - _TAIL.size)
            _, length, magic = _TAIL.unpack(file.read())
            file.seek(end - _TAIL.size - length)
            notes = json.loads(file.read(length))["notes"] if magic == _MAGIC else {}
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return {}
    return notes if isinstance(notes, Mapping) else {}
