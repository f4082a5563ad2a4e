"""A TensorRT plan run by one of TensorRT's flavours; one adapter serves them all.

Only names that every flavour has are used; what one flavour alone has is asked for first. Nothing
here knows CuPy: addresses and streams are plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trtpatch.engines import Bounds, EngineInfo, Shape, Tensor
from trtpatch.engines.build import NOTES
from trtpatch.engines.context import TrtContext
from trtpatch.engines.device import Gpu, current, gpu_for, refuse_foreign_context
from trtpatch.engines.flavours import FLAVOURS, Found, choose
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.planfile import UNKNOWN, PlanFile, read_plan
from trtpatch.engines.rtx import KernelCache, runtime_config
from trtpatch.engines.shapes import check_shapes, narrowed
from trtpatch.engines.trtlog import explain, log_of, quote
from trtpatch.errors import EngineError

_DTYPES = {
    "FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "INT8": "int8", "UINT8": "uint8",
    "INT32": "int32", "INT64": "int64", "BOOL": "bool", "FP8": "float8_e4m3fn",
}  # fmt: skip


class TrtEngine:
    """See `OpenEngine`."""

    def __init__(
        self,
        path: Path,
        options: BuildOptions | None = None,
        *,
        flavour: str = "auto",
        device: int = 0,
        cache_dir: Path | None = None,
        any_form: bool = False,
    ) -> None:
        """Load a plan on a GPU.

        Args:
            path: the plan's file.
            options: shapes for inputs whose sizes the plan leaves open. How to build a plan plays
                no part, which is told.
            flavour: of TensorRT; `auto` takes the first that runs the plan's family.
            device: ordinal of the GPU.
            cache_dir: where TensorRT-RTX's compiled kernels are kept.
            any_form: let TensorRT judge bytes that are no plan known here.

        Raises:
            EngineError: the plan is damaged, was built by or for something else, or there is no
                GPU or no TensorRT that runs it.
        """
        options = options or BuildOptions()
        file = read_plan(path, any_form=any_form)
        self._found = choose_flavour(file, flavour)
        self._gpu = gpu_for(path, device)
        refuse_foreign_context()
        self._log = log_of(self._found.flavour.module)
        self._kernels: KernelCache | None = None
        self._contexts: list[TrtContext] = []
        with current(device):
            self._runtime, self._engine = self._deserialise(file)
            self._config = runtime_config(self._found.module, self._engine)
            if hasattr(self._config, "create_runtime_cache"):
                self._kernels = KernelCache(self._config, file, self._found, self._gpu, cache_dir)
        inputs, outputs = self._tensors(path)
        bounds = {t.name: self._profile(t.name) for t in inputs if -1 in t.shape}
        given = narrowed(str(path), options.input_shape, inputs, bounds)
        unheeded = options.unheeded("the plan is built already", "profile", "tf32", "float16")
        self.info = EngineInfo(
            kind="trt",
            path=str(path),
            flavour=self._found.flavour.module,
            version=self._found.version,
            inputs=given,
            outputs=outputs,
            metadata=file.metadata,
            bounds={t.name: bounds[t.name] for t in given if -1 in t.shape},
            notes=(*self._notes(file), *unheeded),
            scratch_bytes=getattr(self._engine, "device_memory_size_v2", 0),
        )

    def at(self, input_shapes: Mapping[str, Shape]) -> TrtContext:
        """See `OpenEngine.at`."""
        if self._engine is None:
            raise EngineError(f"{self.info.path}: the engine is closed")
        check_shapes(self.info.path, input_shapes, self.info.inputs, bounds=self.info.bounds)
        with current(self._gpu.ordinal):
            made = TrtContext(
                self._make_context(),
                self.info,
                input_shapes,
                found=self._found,
                gpu=self._gpu,
                kernels=self._kernels,
            )
        made.keep_compiled()
        self._contexts = [one for one in self._contexts if not one.closed]
        self._contexts.append(made)
        return made

    def check_pictures(self, sizes: Sequence[tuple[int, int]]) -> None:
        """See `OpenEngine.check_pictures`; it computes the outputs of any."""

    def close(self) -> None:
        """See `OpenEngine.close`."""
        for context in self._contexts:
            context.close()
        if self._engine is not None:
            with current(self._gpu.ordinal):
                self._config = self._kernels = None
                self._engine = None
                self._runtime = None

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

    def _make_context(self) -> Any:
        with self._log.collect() as lines:
            config = [] if self._config is None else [self._config]
            context = self._engine.create_execution_context(*config)
        if context is None:
            raise EngineError(
                f"{self.info.path}: {self._found} cannot make a context on {self._gpu.name}. "
                f"{explain(lines)}{quote(lines)}"
            )
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

    def _notes(self, file: PlanFile) -> list[str]:
        notes = file.metadata.extra.get(NOTES, "").splitlines()
        profiles = self._engine.num_optimization_profiles
        if profiles > 1:
            notes.append(f"the plan has {profiles} optimisation profiles; the first is used")
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
