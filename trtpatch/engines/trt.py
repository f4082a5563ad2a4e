"""A TensorRT plan run by one of TensorRT's flavours; one adapter serves them all.

Only names that every flavour has are used; what one flavour alone has is asked for first. Nothing
here knows CuPy: addresses and streams are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from trtpatch.engines import EngineInfo, InputShape, Shape, Tensor
from trtpatch.engines.build import NOTES
from trtpatch.engines.device import Gpu, current, gpu_for, refuse_foreign_context
from trtpatch.engines.flavours import FLAVOURS, Found, choose
from trtpatch.engines.planfile import UNKNOWN, PlanFile, read_plan
from trtpatch.engines.rtx import KernelCache, runtime_config
from trtpatch.engines.shapes import Bounds, check_shapes, named_shapes
from trtpatch.engines.trtlog import explain, log_of, quote
from trtpatch.errors import EngineError

_DTYPES = {
    "FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "INT8": "int8", "UINT8": "uint8",
    "INT32": "int32", "INT64": "int64", "BOOL": "bool", "FP8": "float8_e4m3fn",
}  # fmt: skip
_SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}
_LEGACY_STREAMS = (0, 1)


class TrtEngine:
    """See `DeviceEngine`."""

    on_device: Literal[True] = True

    def __init__(
        self,
        path: Path,
        *,
        flavour: str = "auto",
        input_shape: InputShape = None,
        device: int = 0,
        cache_dir: Path | None = None,
        any_form: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        """Load a plan on a GPU and make it ready to run.

        Args:
            path: the plan's file.
            flavour: of TensorRT; `auto` takes the first that runs the plan's family.
            input_shape: shapes for inputs whose sizes the plan leaves open; see `open_engine`.
            device: ordinal of the GPU.
            cache_dir: where TensorRT-RTX's compiled kernels are kept.
            any_form: let TensorRT judge bytes that are no plan known here.
            notes: what the user is to be told besides.

        Raises:
            EngineError: the plan is damaged, was built by or for something else, or there is no
                GPU or no TensorRT that runs it.
        """
        file = read_plan(path, any_form=any_form)
        self._found = choose_flavour(file, flavour)
        self._gpu = gpu_for(path, device)
        refuse_foreign_context()
        self._log = log_of(self._found.flavour.module)
        self._kernels: KernelCache | None = None
        with current(device):
            self._runtime, self._engine = self._deserialise(file)
            self._context = self._make_context(file, cache_dir)
        self._addresses: dict[str, int] = {}
        self._data_dependent = False
        self._warm = False
        self.capturable = False
        inputs, outputs = self._tensors(path)
        self._bounds = {t.name: self._profile(t.name) for t in inputs if -1 in t.shape}
        shapes = named_shapes(str(path), input_shape, inputs)
        given = [tensor for tensor in inputs if tensor.name in shapes]
        check_shapes(str(path), shapes, given, bounds=self._bounds)
        self.info = EngineInfo(
            kind="trt",
            path=str(path),
            flavour=self._found.flavour.module,
            version=self._found.version,
            inputs=tuple(replace(t, shape=shapes.get(t.name, t.shape)) for t in inputs),
            outputs=outputs,
            metadata=file.metadata,
            notes=(*notes, *self._notes(file)),
        )

    def prepare(self, input_shapes: Mapping[str, Shape]) -> Mapping[str, Tensor]:
        """See `DeviceEngine.prepare`."""
        path = self.info.path
        check_shapes(path, input_shapes, self.info.inputs, bounds=self._bounds)
        self._data_dependent = self._warm = self.capturable = False
        self._addresses.clear()
        with current(self._gpu.ordinal), self._log.collect() as lines:
            for name, shape in input_shapes.items():
                if not self._open_context().set_input_shape(name, tuple(shape)):
                    raise EngineError(
                        f"{path}: {self._found} refuses {list(shape)} for {name!r}{quote(lines)}"
                    )
            try:
                self._open_context().infer_shapes()
            except RuntimeError as error:
                given = dict(input_shapes)
                raise EngineError(
                    f"{path}: {self._found} cannot run on {given}: {error}{quote(lines)}"
                ) from None
            return {output.name: self._concrete(output) for output in self.info.outputs}

    def enqueue(self, addresses: Mapping[str, int], stream: int) -> None:
        """See `DeviceEngine.enqueue`."""
        context = self._open_context()
        for name, address in addresses.items():
            if self._addresses.get(name) != address:
                if not context.set_tensor_address(name, address):
                    raise EngineError(
                        f"{self.info.path}: {self._found} refuses address {address:#x} for {name!r}"
                    )
                self._addresses[name] = address
        if not self._warm:
            self._warm_up(stream)
        elif not context.execute_async_v3(stream):
            raise EngineError(f"{self.info.path}: {self._found} could not enqueue a run")

    def keep_compiled(self) -> None:
        """See `DeviceEngine.keep_compiled`."""
        if self._kernels:
            self._kernels.save()

    def close(self) -> None:
        """See `DeviceEngine.close`."""
        if self._context is not None:
            self.keep_compiled()
            with current(self._gpu.ordinal):
                self._context = self._kernels = None
                self._engine = None
                self._runtime = None

    def _warm_up(self, stream: int) -> None:
        """The first run, with the checks that need not be made again."""
        if stream in _LEGACY_STREAMS:
            raise EngineError(
                f"{self.info.path}: an engine runs on the pipeline's own stream, "
                f"found the legacy default stream ({stream})"
            )
        tensors = (*self.info.inputs, *self.info.outputs)
        missing = [tensor.name for tensor in tensors if not self._addresses.get(tensor.name)]
        if missing:
            raise EngineError(f"{self.info.path}: no address is given for {', '.join(missing)}")
        with self._log.collect() as lines:
            if not self._context.execute_async_v3(stream):
                raise EngineError(
                    f"{self.info.path}: {self._found} could not enqueue a run. "
                    f"{explain(lines)}{quote(lines)}"
                )
        asks = getattr(self._context, "is_stream_capturable", None)
        self.capturable = not self._data_dependent and (asks is None or bool(asks(stream)))
        self._warm = True

    def _open_context(self) -> Any:
        if self._context is None:
            raise EngineError(f"{self.info.path}: the engine is closed")
        return self._context

    def _deserialise(self, file: PlanFile) -> tuple[Any, Any]:
        trt = self._found.module
        with self._log.collect() as lines:
            if hasattr(trt, "init_libnvinfer_plugins"):
                trt.init_libnvinfer_plugins(self._log.logger, "")
            runtime = trt.Runtime(self._log.logger)
            if self._found.flavour.module == "tensorrt_dispatch":
                runtime.engine_host_code_allowed = True  # it runs the lean runtime in the plan
            engine = runtime.deserialize_cuda_engine(file.plan)
        if engine is None:
            raise EngineError(refusal(file, self._found, self._gpu, lines))
        return runtime, engine

    def _make_context(self, file: PlanFile, cache_dir: Path | None) -> Any:
        with self._log.collect() as lines:
            config = runtime_config(self._found.module, self._engine)
            if hasattr(config, "create_runtime_cache"):
                self._kernels = KernelCache(config, file, self._found, self._gpu, cache_dir)
            context = self._engine.create_execution_context(*([] if config is None else [config]))
        if context is None:
            raise EngineError(
                f"{file.path}: {self._found} cannot make a context on {self._gpu.name}. "
                f"{explain(lines)}{quote(lines)}"
            )
        self.keep_compiled()
        return context

    def _tensors(self, path: Path) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        engine = self._engine
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        for i in range(engine.num_io_tensors):
            name = engine.get_tensor_name(i)
            dtype = engine.get_tensor_dtype(name).name
            tensor = Tensor(
                name, _DTYPES.get(dtype, dtype.lower()), tuple(engine.get_tensor_shape(name))
            )
            if engine.get_tensor_location(name).name != "DEVICE":
                raise EngineError(
                    f"{path}: {tensor} must be in host memory, since a shape is computed from it. "
                    "Export the model with fixed shapes"
                )
            form = engine.get_tensor_format_desc(name)
            if engine.get_tensor_vectorized_dim(name) != -1 or (form and "inear" not in form):
                raise EngineError(
                    f"{path}: {tensor} is not laid out row by row but as {form!r}. Build the plan "
                    "with linear inputs and outputs"
                )
            (inputs if engine.get_tensor_mode(name).name == "INPUT" else outputs).append(tensor)
        return tuple(inputs), tuple(outputs)

    def _profile(self, name: str) -> Bounds:
        low, best, high = self._engine.get_tensor_profile_shape(name, 0)
        return tuple(low), tuple(best), tuple(high)

    def _concrete(self, output: Tensor) -> Tensor:
        """An output with its shape in the runs to come; one open size takes its bound."""
        shape = tuple(self._context.get_tensor_shape(output.name))
        if -1 in shape:
            self._data_dependent = True
            most_bytes = self._context.get_max_output_size(output.name)
            row = math.prod(size for size in shape if size != -1) * _SIZES.get(output.dtype, 1)
            if shape.count(-1) > 1 or most_bytes <= 0 or row <= 0:
                raise EngineError(
                    f"{self.info.path}: the size of output {output} depends on what is in the "
                    "picture and has no bound. Export the model without its NMS, or with a fixed "
                    "number of detections; patches do the NMS"
                )
            shape = tuple(most_bytes // row if size == -1 else size for size in shape)
        return Tensor(output.name, output.dtype, shape)

    def _notes(self, file: PlanFile) -> list[str]:
        notes = file.metadata.extra.get(NOTES, "").splitlines()
        profiles = self._engine.num_optimization_profiles
        if profiles > 1:
            notes.append(f"the plan has {profiles} optimisation profiles; the first is used")
        size = getattr(self._engine, "device_memory_size_v2", 0)
        if size:
            notes.append(f"needs {size / 2**20:.0f} MiB of scratch memory on {self._gpu.name}")
        return notes


def choose_flavour(file: PlanFile, name: str) -> Found:
    """The flavour that runs a plan.

    Raises:
        EngineError: none that can is here, or the one asked for runs plans of another family.
    """
    for flavour in FLAVOURS:
        if name == flavour.module and file.header.family not in (UNKNOWN, flavour.family):
            raise EngineError(
                f"{file.path}: built by {file.header}, which {flavour.product} "
                f"(flavour: {name}) does not run. Leave the flavour out, or build it again"
            )
    try:
        return choose(name, family=file.header.family)
    except EngineError as error:
        raise EngineError(f"{file.path}: built by {file.header}; {error}") from None


def refusal(file: PlanFile, found: Found, gpu: Gpu, lines: list[str]) -> str:
    """Why TensorRT gave no engine: what built the plan, what runs here, and its own words."""
    reason = explain(lines) or "TensorRT gave no engine and no reason known here"
    return (
        f"{file.path}: cannot be loaded: {reason}.\n"
        f"  built with: {file.header}\n"
        f"  running:    {found.flavour.product} {found.version} on {gpu.name} (compute capability "
        f"{gpu.compute[0]}.{gpu.compute[1]}, driver for CUDA {gpu.cuda})\n"
        f"  library:    {found.library or 'unknown'}{quote(lines)}"
    )
