"""An ONNX file read, and its declared input shapes rewritten, without the `onnx` package.

An ONNX file is a protocol buffer: fields of (number, wire type, value), nested. Only the few
fields needed are looked into; all else is skipped, or copied byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trtpatch.engines import Shape, Tensor
from trtpatch.engines.files import content_of, read_file, text_mode_undone, what_is
from trtpatch.engines.metadata import Metadata, read_metadata
from trtpatch.errors import EngineError

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    8: "str", 9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64",
    14: "complex64", 15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1fn",
}  # fmt: skip
"""Names of `TensorProto.DataType`."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_Field = tuple[int, int, "int | memoryview", memoryview]
"""Number, wire type, value, and the whole field as it stands."""


class _DamagedError(ValueError):
    """The bytes are no protocol buffer, or end too early."""


@dataclass(frozen=True)
class OnnxFile:
    """What an ONNX file declares.

    Attributes:
        data: the file's bytes.
        inputs: without the weights, which old files list among them.
        external: files of weights that belong to it, relative to its folder.
        opset: version of the ONNX operators; 0 where it does not tell.
        producer: who wrote it.
    """

    path: Path
    data: bytes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Metadata
    external: tuple[str, ...]
    opset: int
    producer: str


def read_onnx(path: Path) -> OnnxFile:
    """Read an ONNX file.

    Raises:
        EngineError: the file cannot be read, is no ONNX file, is truncated or damaged, or a file
            of its weights is missing.
    """
    data = read_file(path)
    if content_of(data) not in ("onnx", "other"):
        raise EngineError(f"{path}: not an ONNX file; it is {what_is(data)}")
    try:
        model = _scan(path, data)
    except _DamagedError as error:
        raise EngineError(f"{path}: {_damage(path, data, str(error))}") from None
    missing = [name for name in model.external if not (path.parent / name).is_file()]
    if missing:
        raise EngineError(
            f"{path}: its weights are in files of their own, and these are missing beside it: "
            f"{', '.join(missing)}. Copy them along with the ONNX file"
        )
    return model


def with_input_shapes(model: OnnxFile, shapes: Mapping[str, Shape]) -> bytes:
    """The file's bytes with other input shapes declared.

    What contradicts them is forgotten: the shapes of values inside, and the sizes of the outputs,
    whose number of axes is kept.

    Args:
        model: the file.
        shapes: by input name; other inputs keep their shapes.
    """
    out = bytearray()
    for number, wire, value, whole in _fields(memoryview(model.data)):
        if number == 7 and isinstance(value, memoryview):
            graph = bytearray()
            for inner, inner_wire, part, text in _fields(value):
                if inner in (11, 12) and isinstance(part, memoryview):
                    name = _text(_one(part, 1))
                    shape = shapes.get(name) if inner == 11 else None
                    if inner == 12 or shape is not None:
                        part = memoryview(_redeclared(part, shape))
                    graph += _encode(inner, inner_wire, part)
                elif inner != 13:
                    graph += text
            out += _encode(number, wire, memoryview(bytes(graph)))
        else:
            out += whole
    return bytes(out)


def _scan(path: Path, data: bytes) -> OnnxFile:
    graph: memoryview | None = None
    entries: dict[str, object] = {}
    opset, producer = 0, []
    for number, _, value, _ in _fields(memoryview(data)):
        if number == 7 and isinstance(value, memoryview):
            graph = value
        elif number in (2, 3):
            producer.append(_text(value))
        elif number == 8 and _text(_one(value, 1)) in ("", "ai.onnx"):
            opset = _number(_one(value, 2))
        elif number == 14:
            entries[_text(_one(value, 1))] = _text(_one(value, 2))
    if graph is None:
        raise _DamagedError("it holds no graph")
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    weights: set[str] = set()
    external: dict[str, None] = {}
    for number, _, value, _ in _fields(graph):
        if number == 5:
            weights.add(_text(_one(value, 8)))
            external.update(dict.fromkeys(_external(value)))
        elif number in (11, 12):
            (inputs if number == 11 else outputs).append(_tensor(value))
    return OnnxFile(
        path=path,
        data=data,
        inputs=tuple(tensor for tensor in inputs if tensor.name not in weights),
        outputs=tuple(outputs),
        metadata=read_metadata(entries),
        external=tuple(external),
        opset=opset,
        producer=" ".join(producer).strip(),
    )


def _external(initializer: int | memoryview) -> Iterator[str]:
    """The file that a tensor's values lie in, where they lie outside."""
    if _number(_one(initializer, 14)) == 1:
        for entry in _all(initializer, 13):
            if _text(_one(entry, 1)) == "location":
                yield _text(_one(entry, 2))


def _tensor(value_info: int | memoryview) -> Tensor:
    """Name, element type and shape of a `ValueInfoProto`."""
    kind = _one(_one(value_info, 2), 1)
    shape = []
    for axis in _all(_one(kind, 2), 1):
        sizes = _all(axis, 1)
        shape.append(max(-1, _number(sizes[0])) if sizes else -1)
    element = _number(_one(kind, 1))
    return Tensor(_text(_one(value_info, 1)), DTYPES.get(element, f"type{element}"), tuple(shape))


def _redeclared(value_info: memoryview, shape: Shape | None) -> bytes:
    """A `ValueInfoProto` of another shape, or where that is None, of the same number of axes."""

    def change(message: int | memoryview, number: int, new: bytes) -> bytes:
        """The message with its first field of that number replaced, or one put at its end."""
        out, done = bytearray(), False
        for one, _, _, whole in _fields(message):
            if one != number:
                out += whole
            elif not done:
                out, done = out + _encode(number, _BYTES, memoryview(new)), True
        return bytes(out if done else out + _encode(number, _BYTES, memoryview(new)))

    kind = _one(value_info, 2)
    tensor = _one(kind, 1)
    if shape is None:
        if not _all(tensor, 2):
            return bytes(value_info)
        axes = b"".join(_encode(1, _BYTES, memoryview(b"")) for _ in _all(_one(tensor, 2), 1))
    else:
        axes = b"".join(_encode(1, _BYTES, memoryview(_encode(1, _VARINT, n))) for n in shape)
    return change(value_info, 2, change(kind, 1, change(tensor, 2, axes)))


def _damage(path: Path, data: bytes, reason: str) -> str:
    if content_of(data) != "onnx":
        return f"not an ONNX file; it is {what_is(data)}"
    undone = text_mode_undone(data)
    if len(undone) < len(data):
        try:
            _scan(path, undone)
        except _DamagedError:
            pass
        else:
            return "damaged by a text-mode write: each line feed has become CR LF"
    return f"truncated or damaged after {len(data)} bytes: {reason}. Copy or export it again"


def _fields(message: int | memoryview) -> Iterator[_Field]:
    """The fields of a message in order."""
    if isinstance(message, int):
        raise _DamagedError("a number stands where a message should")
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        value: int | memoryview
        if wire == _VARINT:
            value, at = _varint(message, at)
        elif wire in (_BYTES, _FIXED64, _FIXED32):
            if wire == _BYTES:
                size, at = _varint(message, at)
            else:
                size = 8 if wire == _FIXED64 else 4
            if at + size > len(message):
                raise _DamagedError(f"{at + size - len(message)} bytes are missing")
            value, at = message[at : at + size], at + size
        else:
            raise _DamagedError(f"byte {start} begins no field")
        yield number, wire, value, message[start:at]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise _DamagedError("it ends within a number")
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number - (1 << 64) if number >> 63 else number), at
    raise _DamagedError("a number is too long")


def _encode(number: int, wire: int, value: int | memoryview) -> bytes:
    def varint(n: int) -> bytes:
        out = bytearray()
        n &= (1 << 64) - 1
        while n > 0x7F:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        return bytes([*out, n])

    head = varint(number << 3 | wire)
    return head + (varint(value) if isinstance(value, int) else varint(len(value)) + bytes(value))


def _all(message: int | memoryview, number: int) -> list[int | memoryview]:
    return [value for one, _, value, _ in _fields(message) if one == number]


def _one(message: int | memoryview, number: int) -> int | memoryview:
    """The value of that number, the last if it was given again; empty where there is none."""
    found = _all(message, number)
    return found[-1] if found else memoryview(b"")


def _text(value: int | memoryview) -> str:
    return "" if isinstance(value, int) else bytes(value).decode(errors="replace")


def _number(value: int | memoryview) -> int:
    return value if isinstance(value, int) else 0
