"""An ONNX file built to a TensorRT plan, and built plans kept on disk.

TensorRT-RTX builds without a GPU, and by default for every GPU of compute capability 8.0 and
later; it compiles for the GPU at hand when the plan is loaded. The other flavours build on the GPU
that will run the plan.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from trtpatch.engines import Shape, Tensor
from trtpatch.engines.cache import engine_cache
from trtpatch.engines.device import Gpu, current, find_gpu
from trtpatch.engines.flavours import Found, choose
from trtpatch.engines.metadata import json_prefix
from trtpatch.engines.onnxfile import OnnxFile, read_onnx, with_input_shapes
from trtpatch.engines.options import BuildOptions
from trtpatch.engines.planfile import read_plan
from trtpatch.engines.shapes import bounds_of, named_shapes, with_shapes
from trtpatch.engines.trtlog import explain, log_of, quote
from trtpatch.errors import EngineError
from trtpatch.keep import as_name, keep

_log = logging.getLogger("trtpatch.engines")

NOTES = "trtpatch.notes"
"""Key in a plan's metadata of what the user is told when the plan is loaded, a line each."""

_CACHE_FORMAT = 2
_TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"
"""Recorded in a plan, which then wants the same value where it runs."""
_TURING_ENDS = (8, 0)


def build(path: str | Path, options: BuildOptions | None = None, *, device: int = 0) -> bytes:
    """Build an ONNX file to a plan.

    Args:
        path: the ONNX file.
        options: how.
        device: ordinal of the GPU to build on, for flavours that need one.

    Returns:
        The bytes of a plan file; what the ONNX file says of class names comes first, as JSON.

    Raises:
        EngineError: the file, the options or the machine do not allow it; with TensorRT's log.
    """
    options = options or BuildOptions()
    found = choose(options.flavour, builds=True)
    gpu = None if _portable(found.module) else _gpu_to_build_on(found, device)
    model = read_onnx(Path(path))
    _refuse_fixed_batch(model, options)
    plan, notes = _build(model, found, options, gpu)
    for note in notes:
        _log.warning("%s: %s", model.path, note)
    return plan


def _refuse_fixed_batch(model: OnnxFile, options: BuildOptions) -> None:
    shapes = named_shapes(str(model.path), options.input_shape, model.inputs)
    firsts = {tensor.shape[:1] for tensor in with_shapes(model.inputs, shapes)}
    if options.batch is not None and not firsts & {(-1,), (options.batch,)}:
        fixed = next(iter(model.inputs), None)
        opened = "x".join(map(str, (-1, *fixed.shape[1:]))) if fixed else ""
        raise EngineError(
            f"{model.path}: batch {options.batch}, but its input {fixed} has a fixed one. --shape"
            f" {opened} opens it, where the network can do that"
        )


def cached_build(
    path: str | Path,
    options: BuildOptions | None = None,
    *,
    gpu: Gpu | None = None,
    cache_dir: Path | None = None,
) -> Path:
    """The plan of an ONNX file, built now unless it was built before.

    It is built again when the file, its weights, the flavour, its version, the options, the
    environment's NVIDIA_TF32_OVERRIDE, or for flavours that build for one GPU its name, are others.

    Args:
        path: the ONNX file.
        options: how.
        gpu: that will run the plan; None where that is not known (TensorRT-RTX only).
        cache_dir: instead of the user's cache folder.

    Raises:
        EngineError: see `build`.
    """
    options = options or BuildOptions()
    model = read_onnx(Path(path))
    found = choose(options.flavour, builds=True)
    if not _portable(found.module):
        gpu = gpu or _gpu_to_build_on(found, 0)
    elif gpu and gpu.compute < _TURING_ENDS and not options.compute_capabilities:
        options = replace(options, compute_capabilities=(f"SM{gpu.compute[0]}{gpu.compute[1]}",))
    target = "any" if _portable(found.module) else as_name(gpu.name if gpu else "")
    parts = (as_name(model.path.stem), found.flavour.module, as_name(found.version), target)
    name = "-".join((*parts, _key(model, found, options, target)))
    plan = engine_cache(cache_dir) / f"{name}.plan"
    if plan.is_file():
        try:
            read_plan(plan)
        except EngineError as error:
            _log.warning("%s; building it again", error)
        else:
            return plan
    _log.info("building %s with %s, once", model.path, found)
    data, _ = _build(model, found, options, gpu)
    try:
        return keep(plan, data)
    except OSError as error:
        raise EngineError(f"{plan}: cannot be written: {error.strerror or error}") from None


def _key(model: OnnxFile, found: Found, options: BuildOptions, target: str) -> str:
    digest = hashlib.sha256(model.data)
    for name in model.external:
        digest.update(hashlib.sha256((model.path.parent / name).read_bytes()).digest())
    override = os.environ.get(_TF32_OVERRIDE)
    what = (_CACHE_FORMAT, found.flavour.module, found.version, target, vars(options), override)
    digest.update(json.dumps(what, sort_keys=True, default=dict).encode())
    return digest.hexdigest()[:16]


def _portable(module: Any) -> bool:
    """Whether plans are built for kinds of GPU, without one at hand."""
    return hasattr(module, "ComputeCapability")


def _ignores_tf32(found: Found) -> bool:
    """Whether the builder's flag is without effect, as `benchmarks/tf32.py` shows for 1.4."""
    return found.flavour.family == "tensorrt_rtx"


def _gpu_to_build_on(found: Found, device: int) -> Gpu:
    try:
        return find_gpu(device)
    except EngineError as error:
        raise EngineError(
            f"{found.flavour.product} builds on the GPU that will run the plan, and {error}. "
            "TensorRT-RTX builds without a GPU (flavour: tensorrt_rtx)"
        ) from None


def _build(
    model: OnnxFile, found: Found, options: BuildOptions, gpu: Gpu | None
) -> tuple[bytes, tuple[str, ...]]:
    """The plan's file, and what the user is to be told, which is in it as well."""
    shapes = named_shapes(str(model.path), options.input_shape, model.inputs)
    data = with_input_shapes(model, shapes) if shapes else model.data
    here = current(gpu.ordinal) if gpu and not _portable(found.module) else nullcontext()
    with here:
        plan, notes = _serialise(model, data, shapes, found, options)
    metadata = model.metadata
    if notes:
        metadata = replace(metadata, extra={**metadata.extra, NOTES: "\n".join(notes)})
    return json_prefix(metadata) + plan, notes


def _serialise(
    model: OnnxFile, data: bytes, shapes: Mapping[str, Shape], found: Found, options: BuildOptions
) -> tuple[bytes, tuple[str, ...]]:
    trt = found.module
    log = log_of(found.flavour.module)
    notes: tuple[str, ...] = ()
    with log.collect() as lines:
        builder = trt.Builder(log.logger)
        network, half = _network(trt, builder, float16=options.float16)
        if options.float16 and not half and _has_float32(model):
            note = (
                f"float16 asked for, float32 delivered: {found.flavour.product} {found.version} "
                "keeps the types of the ONNX file. Export the model in float16"
            )
            notes = (note,)
        if not options.tf32 and _ignores_tf32(found) and os.environ.get(_TF32_OVERRIDE) != "0":
            note = (
                f"tf32: false plays no part: {found.flavour.product} {found.version} multiplies in "
                f"TF32 all the same. {_TF32_OVERRIDE}=0 in the environment turns it off, and "
                "leaves some layers without a kernel"
            )
            notes = (*notes, note)
        parser = trt.OnnxParser(network, log.logger)
        if not parser.parse(data, str(model.path)):
            raise EngineError(f"{model.path}: {found} cannot read it:{_parser_errors(parser)}")
        config = _config(trt, builder, options, half=half)
        _add_profile(builder, config, model, shapes, options)
        plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise EngineError(f"{model.path}: {found} cannot build it. {explain(lines)}{quote(lines)}")
    return bytes(memoryview(plan)), notes


def _network(trt: Any, builder: Any, *, float16: bool) -> tuple[Any, bool]:
    """A network, strongly typed unless half precision is to be TensorRT's choice, and if it is."""
    strong = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    if float16 and hasattr(trt.BuilderFlag, "FP16"):
        network = builder.create_network(0)
        if strong is None or not network.get_flag(strong):
            return network, True
    return builder.create_network(0 if strong is None else 1 << int(strong)), False


def _config(trt: Any, builder: Any, options: BuildOptions, *, half: bool) -> Any:
    config = builder.create_builder_config()
    if half:
        config.set_flag(trt.BuilderFlag.FP16)
    if options.version_compatible:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
    if not options.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options.workspace_bytes:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_bytes)
    if options.compute_capabilities:
        _set_capabilities(trt, config, options.compute_capabilities)
    return config


def _set_capabilities(trt: Any, config: Any, names: tuple[str, ...]) -> None:
    if not _portable(trt):
        raise EngineError(f"{trt.__name__} builds for the GPU at hand, not for {', '.join(names)}")
    known = trt.ComputeCapability.__members__
    config.num_compute_capabilities = len(names)
    for i, name in enumerate(names):
        if name not in known:
            raise EngineError(
                f"{trt.__name__} {trt.__version__} does not build for {name!r}; "
                f"it knows {', '.join(k for k in known if k != 'NONE')}"
            )
        config.set_compute_capability(known[name], i)


def _add_profile(
    builder: Any, config: Any, model: OnnxFile, shapes: Mapping[str, Shape], options: BuildOptions
) -> None:
    """Bounds for every input that leaves a size open."""
    inputs = with_shapes(model.inputs, shapes)
    bounds = bounds_of(str(model.path), inputs, profile=options.profile, batch=options.batch)
    profile = builder.create_optimization_profile()
    open_inputs = [tensor for tensor in inputs if -1 in tensor.shape]
    for tensor in open_inputs:
        if tensor.name not in bounds:
            raise EngineError(_advice(model, tensor))
        profile.set_shape(tensor.name, *bounds[tensor.name])
    if open_inputs and config.add_optimization_profile(profile) < 0:
        raise EngineError(f"{model.path}: the profile is refused: {bounds}")


def _advice(model: OnnxFile, tensor: Tensor) -> str:
    example = [640 if i >= 2 else 1 for i in range(len(tensor.shape))]
    shape = [size if size > 0 else example[i] for i, size in enumerate(tensor.shape)]
    return (
        f"{model.path}: input {tensor} leaves sizes open, and a plan needs them. "
        f"Give its shape (input_shape: {shape}), or its bounds (profile: min, opt, max). "
        f"'trtpatch build' takes --shape {'x'.join(map(str, shape))}, --shape MIN:OPT:MAX and, "
        "where the batch alone is open, --batch"
    )


def _parser_errors(parser: Any) -> str:
    lines = []
    for i in range(parser.num_errors):
        error = parser.get_error(i)
        node = f"node {error.node_name()!r}, operator or plugin {error.node_operator()!r}: "
        lines.append(f"\n  {node if error.node_operator() else ''}{error.desc()}")
    return "".join(lines[:10])


def _has_float32(model: OnnxFile) -> bool:
    return any(tensor.dtype == "float32" for tensor in (*model.inputs, *model.outputs))
