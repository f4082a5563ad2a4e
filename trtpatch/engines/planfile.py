"""A TensorRT plan's file: the exporter's prefix, the plan's own header, and its damages.

The header is not documented; what is read here was seen in plans written by TensorRT-RTX 1.4 and
1.7 and in what the lean runtimes 10.16 and 11.4 check: 32 bytes that hold a magic tag, the number
of parts, the size of the whole plan, and the version in four bytes. A plan of another form is
passed on with version and flavour 'unknown'.
"""

from __future__ import annotations

import json
import logging
import struct
from dataclasses import dataclass
from pathlib import Path

from trtpatch.engines.files import (
    PLAN_MAGICS,
    has_json_prefix,
    read_file,
    text_mode_undone,
    what_is,
)
from trtpatch.engines.metadata import Metadata, read_metadata
from trtpatch.errors import EngineError

_log = logging.getLogger("trtpatch.engines")

UNKNOWN = "unknown"

_HEADER = struct.Struct("<4sIQQ4BI")
_FAMILIES = {b"ftrt": "tensorrt", b"ptrt": "tensorrt", b"vtrt": "tensorrt_rtx"}
_SIZED = (b"ftrt", b"vtrt")
_LARGE = 1 << 19


@dataclass(frozen=True)
class Header:
    """What a plan says about itself.

    Attributes:
        family: `tensorrt` (also run by its lean and dispatch runtimes), `tensorrt_rtx`, `unknown`.
        version: of the library that built it, such as `1.4.0.76`, or `unknown`.
        size: bytes that the whole plan has; 0 where it does not tell.
    """

    family: str = UNKNOWN
    version: str = UNKNOWN
    size: int = 0

    def __str__(self) -> str:
        if self.family == UNKNOWN:
            return "an unknown version of TensorRT"
        product = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}[self.family]
        return f"{product} {self.version if self.version != UNKNOWN else 'of unknown version'}"


@dataclass(frozen=True)
class PlanFile:
    """A plan without its prefix, and what the prefix and the header say."""

    path: Path
    plan: bytes
    header: Header
    metadata: Metadata


def read_plan(path: Path, *, any_form: bool = False) -> PlanFile:
    """Read a plan and check as much of it as can be checked without TensorRT.

    Args:
        path: the plan's file.
        any_form: pass on bytes without a known magic tag, for TensorRT to judge.

    Raises:
        EngineError: the file cannot be read, is no plan, is truncated, or went through a
            text-mode write.
    """
    data = read_file(path)
    plan, metadata = _split(path, data)
    header = read_header(plan)
    if header.family == UNKNOWN and not any_form:
        what = what_is(plan) if plan else "nothing"
        after = " after the metadata" if len(plan) < len(data) else ""
        raise EngineError(f"{path}: not a TensorRT plan; what stands there{after} is {what}")
    if plan[:4] in _SIZED and header.size != len(plan) and (damage := _damage(plan, header)):
        raise EngineError(f"{path}: {damage}")
    return PlanFile(path=path, plan=plan, header=header, metadata=metadata)


def read_header(plan: bytes) -> Header:
    """Magic tag, version and size of a plan; `unknown` for what cannot be told."""
    family = _FAMILIES.get(plan[:4], UNKNOWN)
    if plan[:4] not in _SIZED or len(plan) < _HEADER.size:
        return Header(family=family)
    _, pad, parts, size, *version, _ = _HEADER.unpack_from(plan)
    if pad or not 1 <= parts <= 64 or size < _HEADER.size or not version[0]:
        return Header(family=family)
    return Header(family=family, version=".".join(map(str, version)), size=size)


def _split(path: Path, data: bytes) -> tuple[bytes, Metadata]:
    """Part an exporter's JSON from the plan behind it."""
    if data[:4] in PLAN_MAGICS or not has_json_prefix(data):
        return data, Metadata()
    end = 4 + int.from_bytes(data[:4], "little")
    if end > len(data):
        raise EngineError(
            f"{path}: truncated: {end} bytes of length and metadata are announced, "
            f"the file has {len(data)}"
        )
    try:
        entries = json.loads(data[4:end].decode())
    except (ValueError, RecursionError) as error:
        raise EngineError(
            f"{path}: the JSON metadata in front of the plan is damaged: {error}"
        ) from None
    if not isinstance(entries, dict):
        raise EngineError(f"{path}: the metadata in front of the plan is no JSON object")
    _log.debug("%s: %d bytes of metadata come before the plan", path, end)
    return data[end:], read_metadata(entries)


def _damage(plan: bytes, header: Header) -> str:
    """Why a plan has not the size that its header gives; empty where that cannot be told."""
    undone = text_mode_undone(plan)
    if len(undone) < len(plan) and read_header(undone).size == len(undone):
        return (
            "damaged by a text-mode write: each line feed has become CR LF. "
            "Write and copy plans in binary mode (open(path, 'wb'); no 'ascii' transfers)"
        )
    if plan.count(b"\xef\xbf\xbd") > len(plan) // 1000:
        return "damaged: it was decoded and written as text. Write plans in binary mode ('wb')"
    if not header.size:
        return ""
    missing = header.size - len(plan)
    if missing > 0:
        large = len(plan) > _LARGE  # random bytes of this size would hold CR LF
        if large and b"\n" in plan and b"\r\n" not in plan and missing < len(plan) // 20_000:
            return (
                f"damaged: {missing} bytes are missing and no CR LF is left, as after reading it "
                "in text mode. Read and copy plans in binary mode"
            )
        return f"truncated: the plan has {len(plan)} of {header.size} bytes. Copy or build it again"
    return f"damaged: the plan has {header.size} bytes, but {len(plan)} bytes are in the file"
