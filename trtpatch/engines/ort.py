"""An ONNX file run by ONNX Runtime on the CPU: the engine of a machine without a GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trtpatch.engines import EngineInfo, InputShape, Shape, Tensor
from trtpatch.engines.onnxfile import OnnxFile, read_onnx, with_input_shapes
from trtpatch.engines.shapes import check_shapes, named_shapes
from trtpatch.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DTYPES = {"float": "float32", "double": "float64"}
_ERRORS_ONLY = 3
_MISSING_OPS = (
    re.compile(r"(?P<op>[\w.:]+)\(-?\d+\) is not a registered function/op"),
    re.compile(r"No Op registered for (?P<op>\S+)"),
    re.compile(r"Could not find an implementation for (?P<op>\w+)"),
)


class OrtEngine:
    """See `HostEngine`. Same inputs, same outputs, bit for bit, on the same machine."""

    on_device: Literal[False] = False
    needs_inputs = True

    def __init__(
        self, path: Path, *, input_shape: InputShape = None, notes: tuple[str, ...] = ()
    ) -> None:
        """Open an ONNX file.

        Args:
            path: the file.
            input_shape: shapes instead of those that the file declares; see `open_engine`.
            notes: what the user is to be told besides.

        Raises:
            EngineError: ONNX Runtime is not installed, or it cannot run the file.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineError(
                f"{path}: ONNX Runtime, which runs ONNX files on the CPU, does not import: "
                f"{error}. pip install onnxruntime"
            ) from None
        model = read_onnx(path)
        shapes = named_shapes(str(path), input_shape, model.inputs)
        self._overridden = bool(shapes)
        self._session: Any = _open_session(onnxruntime, model, shapes)
        self._prepared: dict[str, Tensor] | None = None
        self._given: dict[str, Shape] = {}
        self.info = EngineInfo(
            kind="ort",
            path=str(path),
            flavour="onnxruntime",
            version=onnxruntime.__version__,
            inputs=tuple(_tensor(value) for value in self._session.get_inputs()),
            outputs=tuple(_tensor(value) for value in self._session.get_outputs()),
            metadata=model.metadata,
            notes=notes,
        )

    def prepare(self, input_shapes: Mapping[str, Shape]) -> Mapping[str, Tensor]:
        """See `HostEngine.prepare`.

        Where the file leaves sizes open, or declares others than are asked for, two trial runs
        measure the outputs: on zeros and on noise. Sizes that differ depend on the data, and are
        refused.
        """
        check_shapes(self.info.path, input_shapes, self.info.inputs)
        self._given = {name: tuple(shape) for name, shape in input_shapes.items()}
        measured = [output.shape for output in self.info.outputs]
        tensors = (*self.info.inputs, *self.info.outputs)
        if self._overridden or any(-1 in tensor.shape for tensor in tensors):
            measured, again = self._trial(noise=False), self._trial(noise=True)
            for output, one, two in zip(self.info.outputs, measured, again, strict=True):
                if one != two or (-1 in output.shape and 0 in one):
                    raise EngineError(
                        f"{self.info.path}: the size of output {output} depends on what is in "
                        f"the picture (zeros gave {list(one)}, noise gave {list(two)}) and has no "
                        "bound. Export the model without its NMS, or with a fixed number of "
                        "detections; patches do the NMS"
                    )
        self._prepared = {
            output.name: Tensor(output.name, output.dtype, shape)
            for output, shape in zip(self.info.outputs, measured, strict=True)
        }
        return dict(self._prepared)

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """See `HostEngine.run`."""
        if self._prepared is None:
            raise EngineError(f"{self.info.path}: prepare() comes before run()")
        for tensor in self.info.inputs:
            array = inputs.get(tensor.name)
            expected = f"{tensor.dtype} {list(self._given[tensor.name])}"
            if array is None:
                raise EngineError(
                    f"{self.info.path}: input {tensor.name!r} is missing, expected {expected}"
                )
            if array.dtype != tensor.dtype or array.shape != self._given[tensor.name]:
                raise EngineError(
                    f"{self.info.path}: input {tensor.name!r}: expected {expected}, "
                    f"found {array.dtype} {list(array.shape)}"
                )
        outputs = self._run({name: np.ascontiguousarray(array) for name, array in inputs.items()})
        for name, array in outputs.items():
            if array.shape != self._prepared[name].shape:
                raise EngineError(
                    f"{self.info.path}: output {name!r} came out as {list(array.shape)}, not "
                    f"{list(self._prepared[name].shape)}: its size depends on what is in the "
                    "picture. Export the model without its NMS; patches do the NMS"
                )
        return outputs

    def close(self) -> None:
        """See `HostEngine.close`."""
        self._session = None

    def _trial(self, *, noise: bool) -> list[Shape]:
        """The shapes of the outputs of one run on made-up inputs."""
        random = np.random.default_rng(0)
        inputs: dict[str, NDArray[Any]] = {}
        for tensor in self.info.inputs:
            shape = self._given[tensor.name]
            values = random.random(shape) if noise else np.zeros(shape)
            inputs[tensor.name] = np.asarray(values).astype(tensor.dtype)
        return [array.shape for array in self._run(inputs).values()]

    def _run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if self._session is None:
            raise EngineError(f"{self.info.path}: the engine is closed")
        names = [output.name for output in self.info.outputs]
        try:
            return dict(zip(names, self._session.run(names, inputs), strict=True))
        except Exception as error:
            shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in inputs.items())
            raise EngineError(
                f"{self.info.path}: ONNX Runtime cannot run it on {shapes}: {_reason(error)}"
            ) from None


def _open_session(onnxruntime: Any, model: OnnxFile, shapes: Mapping[str, Shape]) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.use_deterministic_compute = True
    source: str | bytes = str(model.path)
    if shapes:
        source = with_input_shapes(model, shapes)
        if model.external:
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path",
                str(model.path.resolve().parent),
            )
    try:
        return onnxruntime.InferenceSession(
            source, sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        text = _reason(error)
        for pattern in _MISSING_OPS:
            if found := pattern.search(text):
                raise EngineError(
                    f"{model.path}: ONNX Runtime {onnxruntime.__version__} has no operator "
                    f"{found['op']!r} on the CPU. It may be a TensorRT plugin, or newer than this "
                    f"ONNX Runtime; the file is of opset {model.opset}. It said: {text}"
                ) from None
        raise EngineError(
            f"{model.path}: ONNX Runtime {onnxruntime.__version__} refuses it: {text}"
        ) from None


def _tensor(value: Any) -> Tensor:
    """An input or output as a session describes it, `tensor(float)` and open sizes as text."""
    found = re.fullmatch(r"tensor\((\w+)\)", value.type)
    dtype = found[1] if found else value.type
    shape = tuple(size if isinstance(size, int) else -1 for size in value.shape)
    return Tensor(value.name, _DTYPES.get(dtype, dtype), shape)


def _reason(error: Exception) -> str:
    """ONNX Runtime's message without its code and C++ signatures."""
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error)).strip()
    return re.sub(r"/\S+\.(cc|h):\d+ .*?\) (?=[A-Z])", "", text)
