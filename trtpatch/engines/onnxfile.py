"""An ONNX file read, and its declared input shapes rewritten, by the `onnx` package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtpatch.engines import Shape, Tensor
from trtpatch.engines.files import content_of, read_file, text_mode_undone, what_is
from trtpatch.engines.metadata import Metadata, read_metadata
from trtpatch.errors import EngineError
from trtpatch.extras import install

_DTYPES = {"FLOAT": "float32", "DOUBLE": "float64", "STRING": "str"}
"""Element types that NumPy calls otherwise than ONNX does, apart from upper case."""


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
        EngineError: the `onnx` package is missing, or the file cannot be read, is no ONNX file, is
            truncated or damaged, or a file of its weights is missing.
    """
    data = read_file(path)
    if content_of(data) not in ("onnx", "other"):
        raise EngineError(f"{path}: not an ONNX file; it is {what_is(data)}")
    try:
        import onnx
        from onnx.external_data_helper import ExternalDataInfo, uses_external_data
    except ImportError as error:
        raise EngineError(
            f"{path}: the package that reads ONNX files does not import: {error}. {install('cpu')}"
        ) from None
    model = _parse(data)
    if model is None or not model.HasField("graph"):
        raise EngineError(f"{path}: {_damage(data)}")
    weights = model.graph.initializer
    try:
        external = [ExternalDataInfo(one).location for one in weights if uses_external_data(one)]
    except ValueError as error:
        raise EngineError(f"{path}: damaged: {error}. Copy or export it again") from None
    missing = [name for name in external if not (path.parent / name).is_file()]
    if missing:
        raise EngineError(
            f"{path}: its weights are in files of their own, and these are missing beside it: "
            f"{', '.join(dict.fromkeys(missing))}. Copy them along with the ONNX file"
        )
    named = {tensor.name for tensor in weights}
    opsets = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
    return OnnxFile(
        path=path,
        data=data,
        inputs=_tensors(onnx, (one for one in model.graph.input if one.name not in named)),
        outputs=_tensors(onnx, model.graph.output),
        metadata=read_metadata({_text(e.key): _text(e.value) for e in model.metadata_props}),
        external=tuple(dict.fromkeys(external)),
        opset=max(opsets, default=0),
        producer=f"{_text(model.producer_name)} {_text(model.producer_version)}".strip(),
    )


def with_input_shapes(model: OnnxFile, shapes: Mapping[str, Shape]) -> bytes:
    """The file's bytes with other input shapes declared.

    What contradicts them is forgotten: the shapes of values inside, and the sizes of the outputs,
    whose number of axes is kept.

    Args:
        model: the file.
        shapes: by input name, -1 for a size that is left open; other inputs keep their shapes.
    """
    changed = _parse(model.data)
    graph = changed.graph
    graph.ClearField("value_info")
    for value in graph.input:
        for axis, size in zip(_axes(value), shapes.get(value.name, ()), strict=False):
            axis.Clear()
            if size >= 0:
                axis.dim_value = size
    for value in graph.output:
        for axis in _axes(value):
            axis.Clear()
    data: bytes = changed.SerializeToString()
    return data


def _parse(data: bytes) -> Any:
    """The `ModelProto`, or None where the bytes are none."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError:
        return None


def _tensors(onnx: Any, values: Iterable[Any]) -> tuple[Tensor, ...]:
    """Names, element types and shapes of `ValueInfoProto`s."""
    types = {number: name for name, number in onnx.TensorProto.DataType.items()}
    found = []
    for value in values:
        number = value.type.tensor_type.elem_type
        name = types.get(number, f"type{number}")
        sizes = (a.dim_value if a.HasField("dim_value") else -1 for a in _axes(value))
        shape = tuple(max(-1, size) for size in sizes)
        found.append(Tensor(_text(value.name), _DTYPES.get(name, name.lower()), shape))
    return tuple(found)


def _axes(value: Any) -> Any:
    return value.type.tensor_type.shape.dim


def _text(value: str | bytes) -> str:
    """Text as it stands; protobuf gives bytes where they are not UTF-8."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _damage(data: bytes) -> str:
    """What is wrong with bytes that are no ONNX file."""
    if content_of(data) != "onnx":
        return f"not an ONNX file; it is {what_is(data)}"
    if _parse(data) is not None:
        return f"it holds no graph in its {len(data)} bytes. Export it again"
    undone = text_mode_undone(data)
    if len(undone) < len(data) and _parse(undone) is not None:
        return "damaged by a text-mode write: each line feed has become CR LF"
    return f"truncated or damaged after {len(data)} bytes. Copy or export it again"
