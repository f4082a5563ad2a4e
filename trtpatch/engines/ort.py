"""An ONNX file run by ONNX Runtime on the CPU: the engine of a machine without a GPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trtpatch.engines import EngineInfo, Shape, Tensor
from trtpatch.engines.onnxfile import OnnxFile, read_onnx, with_input_shapes
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.shapes import bounds_of, check_shapes, named_shapes, ready_info, with_shapes
from trtpatch.errors import EngineError
from trtpatch.extras import install

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DTYPES = {"float": "float32", "double": "float64"}
_FATAL_ONLY = 4
_MISSING_OPS = (
    re.compile(r"(?P<op>[\w.:]+)\(-?\d+\) is not a registered function/op"),
    re.compile(r"No Op registered for (?P<op>\S+)"),
    re.compile(r"Could not find an implementation for (?P<op>\w+)"),
)


class OrtEngine:
    """See `OpenEngine`."""

    def __init__(
        self, path: Path, options: BuildOptions | None = None, *, notes: tuple[str, ...] = ()
    ) -> None:
        """Open an ONNX file.

        Args:
            path: the file.
            options: shapes, of which those that the file leaves open are open here too.
            notes: what the user is to be told besides.

        Raises:
            EngineError: ONNX Runtime is not installed, or it cannot run the file.
        """
        try:
            import onnxruntime
        except ImportError as error:
            raise EngineError(
                f"{path}: ONNX Runtime, which runs ONNX files on the CPU, does not import: "
                f"{error}. {install('cpu')}"
            ) from None
        options = options or BuildOptions()
        model = read_onnx(path)
        shapes = named_shapes(str(path), options.input_shape, model.inputs)
        open_inputs = with_shapes(model.inputs, shapes)
        bounds = bounds_of(str(path), open_inputs, profile=options.profile, batch=options.batch)
        unheeded = options.unheeded("ONNX Runtime keeps the types of the file", "float16")
        self._overridden = bool(shapes)
        self._session: Any = _open_session(onnxruntime, model, shapes)
        self._noise_tried = False
        self.info = EngineInfo(
            kind="ort",
            path=str(path),
            flavour="onnxruntime",
            version=onnxruntime.__version__,
            inputs=tuple(_tensor(value) for value in self._session.get_inputs()),
            outputs=tuple(_tensor(value) for value in self._session.get_outputs()),
            metadata=model.metadata,
            bounds=bounds,
            notes=(*notes, *unheeded),
        )

    def at(self, input_shapes: Mapping[str, Shape]) -> OrtRunner:
        """See `OpenEngine.at`.

        Where the file leaves sizes open, or declares others than are asked for, a trial run on
        zeros measures the outputs, and the first time one on noise as well. Sizes that differ
        depend on the data, and are refused.
        """
        check_shapes(self.info.path, input_shapes, self.info.inputs, bounds=self.info.bounds)
        outputs = self.info.outputs
        if self._overridden or any(-1 in t.shape for t in (*self.info.inputs, *outputs)):
            outputs = self._measured(with_shapes(self.info.inputs, input_shapes))
        return OrtRunner(self, ready_info(self.info, input_shapes, outputs))

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once; the arrays are contiguous, and of shapes that the network can take."""
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

    def check_pictures(self, sizes: Sequence[tuple[int, int]]) -> None:
        """See `OpenEngine.check_pictures`; it computes the outputs of any."""

    def close(self) -> None:
        """See `OpenEngine.close`."""
        self._session = None

    def _measured(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The outputs with the shapes that trial runs gave."""
        one = self._trial(inputs, noise=False)
        two = one if self._noise_tried else self._trial(inputs, noise=True)
        for output in self.info.outputs:
            zeros, noise = one[output.name], two[output.name]
            if zeros != noise or (-1 in output.shape and 0 in zeros):
                raise EngineError(
                    f"{self.info.path}: the size of output {output} depends on what is in "
                    f"the picture (zeros gave {list(zeros)}, noise gave {list(noise)}) and has no "
                    "bound. Export the model without its NMS, or with a fixed number of "
                    "detections; patches do the NMS"
                )
        self._noise_tried = True
        return with_shapes(self.info.outputs, one)

    def _trial(self, inputs: tuple[Tensor, ...], *, noise: bool) -> dict[str, Shape]:
        """The shapes of the outputs of one run on made-up inputs."""
        random = np.random.default_rng(0)
        made: dict[str, NDArray[Any]] = {}
        for tensor in inputs:
            try:
                values = random.random(tensor.shape) if noise else np.zeros(tensor.shape)
                made[tensor.name] = np.asarray(values).astype(tensor.dtype)
            except (TypeError, ValueError, MemoryError) as error:
                raise EngineError(
                    f"{self.info.path}: input {tensor} cannot be made for a trial run: {error}"
                ) from None
        return {name: array.shape for name, array in self.run(made).items()}


class OrtRunner:
    """See `HostEngine`. Same inputs, same outputs, bit for bit, on the same machine."""

    on_device: Literal[False] = False
    needs_inputs = True

    def __init__(self, engine: OrtEngine, info: EngineInfo) -> None:
        self._engine: OrtEngine | None = engine
        self._outputs = {output.name: output for output in info.outputs}
        self.info = info

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        """See `HostEngine.run`."""
        if self._engine is None:
            raise EngineError(f"{self.info.path}: the engine is closed")
        for tensor in self.info.inputs:
            array = inputs.get(tensor.name)
            place = f"{self.info.path}: input {tensor.name!r}"
            expected = f"expected {tensor.dtype} {list(tensor.shape)}"
            if array is None:
                raise EngineError(f"{place} is missing, {expected}")
            if array.dtype != tensor.dtype or array.shape != tensor.shape:
                found = f"{array.dtype} {list(array.shape)}"
                raise EngineError(f"{place}: {expected}, found {found}")
        contiguous = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        outputs = self._engine.run(contiguous)
        for name, array in outputs.items():
            if array.shape != self._outputs[name].shape:
                raise EngineError(
                    f"{self.info.path}: output {name!r} came out as {list(array.shape)}, not "
                    f"{list(self._outputs[name].shape)}: its size depends on what is in the "
                    "picture. Export the model without its NMS; patches do the NMS"
                )
        return outputs

    def close(self) -> None:
        """See `HostEngine.close`."""
        self._engine = None


def _open_session(onnxruntime: Any, model: OnnxFile, shapes: Mapping[str, Shape]) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.use_deterministic_compute = True
    source: str | bytes = str(model.path)
    if shapes or not _is_utf8(model.path):
        source = with_input_shapes(model, shapes) if shapes else model.data
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


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


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
