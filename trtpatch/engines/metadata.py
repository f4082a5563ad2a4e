"""What an exporter wrote beside a network: class names, stride, and whatever else it kept.

Exporters put it into an ONNX file's `metadata_props`; one popular exporter puts the same as JSON
in front of a TensorRT plan. Both are read to, and the latter written from, one `Metadata`.
"""

from __future__ import annotations

import ast
import json
import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

_log = logging.getLogger("trtpatch.engines")

_LONGEST_TEXT = 1 << 20
_MOST_NAMES = 100_000


@dataclass(frozen=True)
class Metadata:
    """What an exporter said about a network.

    Attributes:
        names: class names, the name of class i at index i; empty where the file has none.
        stride: the largest stride of the network in pixels; None where the file does not tell.
        extra: all else, as text.
    """

    names: tuple[str, ...] = ()
    stride: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.names or self.stride is not None or self.extra)


def read_metadata(entries: Mapping[str, object]) -> Metadata:
    """Sort an exporter's entries; one that cannot be understood stays in `extra`.

    Args:
        entries: values are text (ONNX) or JSON values (a plan's prefix). `names` may be a list, a
            mapping from class number to name, or either of them as Python or JSON text.
    """
    names: tuple[str, ...] = ()
    stride: int | None = None
    extra: dict[str, str] = {}
    for key, value in entries.items():
        if key == "names" and (names := _names(value)):
            continue
        if key == "stride" and (_whole_number(value) or 0) > 0:
            stride = _whole_number(value)
            continue
        extra[key] = value if isinstance(value, str) else json.dumps(value)
    if "names" in extra:
        _log.warning("the class names in the file are not understood: %.80s", extra["names"])
    return Metadata(names=names, stride=stride, extra=extra)


def json_prefix(metadata: Metadata) -> bytes:
    """Four bytes of length, little-endian, and the JSON text that goes in front of a plan."""
    if not metadata:
        return b""
    entries: dict[str, object] = dict(metadata.extra)
    if metadata.names:
        entries["names"] = {str(i): name for i, name in enumerate(metadata.names)}
    if metadata.stride is not None:
        entries["stride"] = metadata.stride
    text = json.dumps(entries).encode()
    return len(text).to_bytes(4, "little") + text


def _names(value: object) -> tuple[str, ...]:
    """Class names in order, or nothing where the value is no list or mapping of names."""
    if isinstance(value, str):
        value = _literal(value)
    if isinstance(value, Mapping):
        numbered = {_whole_number(key): name for key, name in value.items()}
        numbers = [number for number in numbered if number is not None]
        if not numbers or len(numbers) < len(value) or not 0 <= max(numbers) < _MOST_NAMES:
            return ()
        value = [numbered.get(i, i) for i in range(max(numbers) + 1)]
    if isinstance(value, (list, tuple)) and len(value) <= _MOST_NAMES:
        return tuple(str(name) for name in value)
    return ()


def _literal(text: str) -> object:
    """A Python literal or JSON value; None where the text is neither, or is overlong."""
    if len(text) > _LONGEST_TEXT:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning, for a backslash in a name
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _whole_number(value: object) -> int | None:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            number = float(value)
        except ValueError:
            return None
        return int(number) if number.is_integer() else None
    return None
