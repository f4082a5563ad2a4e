"""What an engine file is, told without running it, and as far as this machine can tell."""

from __future__ import annotations

from pathlib import Path

from trtpatch.engines import EngineInfo
from trtpatch.engines.files import content_of, read_file
from trtpatch.engines.onnxfile import read_onnx
from trtpatch.engines.planfile import UNKNOWN, read_plan
from trtpatch.engines.recorded import RecordedEngine
from trtpatch.engines.trt import TrtEngine
from trtpatch.errors import EngineError


def inspect(path: str | Path, *, flavour: str = "auto", device: int = 0) -> EngineInfo:
    """Describe an engine file.

    An ONNX file and a recording tell all by themselves. A plan tells its inputs and outputs only
    to TensorRT on a GPU; without one, what its header and its exporter's metadata say is given,
    and `notes` has the reason.

    Raises:
        EngineError: the file cannot be read, or is no engine.
    """
    path = Path(path)
    content = content_of(read_file(path, most_bytes=4096))
    if content == "recorded":
        return RecordedEngine(path).info
    if content == "plan":
        return _inspect_plan(path, flavour=flavour, device=device)
    model = read_onnx(path)
    external = f"; weights in {', '.join(model.external)}" if model.external else ""
    return EngineInfo(
        kind="ort",
        path=str(path),
        flavour="onnx",
        version=f"opset {model.opset}" if model.opset else UNKNOWN,
        inputs=model.inputs,
        outputs=model.outputs,
        metadata=model.metadata,
        notes=(f"written by {model.producer or 'an unknown exporter'}{external}",),
    )


def _inspect_plan(path: Path, *, flavour: str, device: int) -> EngineInfo:
    file = read_plan(path)
    built = f"built with {file.header}"
    try:
        engine = TrtEngine(path, flavour=flavour, device=device)
    except EngineError as error:
        return EngineInfo(
            kind="trt",
            path=str(path),
            flavour=file.header.family,
            version=file.header.version,
            inputs=(),
            outputs=(),
            metadata=file.metadata,
            notes=(built, f"inputs and outputs are not known: {error}"),
        )
    engine.close()
    return EngineInfo(**{**vars(engine.info), "notes": (built, *engine.info.notes)})
