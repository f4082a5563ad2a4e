"""What a pipeline file, a patch or a rule comes to, as plain data to print or to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trtpatch.catalog import Catalog, Patch, Rule
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.errors import MatchError
from trtpatch.loaded import Loaded
from trtpatch.match import match
from trtpatch.plan import REGIONS, EngineStep, Launch, PatchStep
from trtpatch.spec import yamlfile
from trtpatch.spec.dims import format_shape
from trtpatch.spec.expressions import Value
from trtpatch.spec.patch import ParamValue, TensorSpec


@dataclass(frozen=True)
class BoundTensor:
    """A field of a step and what it is bound to.

    Attributes:
        role: `in`, `out` or `scratch`.
        shapes: one, or one a level of a group.
        buffers: likewise.
    """

    field: str
    role: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class BoundParam:
    """A parameter, its value, and who said so: `default`, or a place in a file.

    Attributes:
        runtime: whether it may change from frame to frame.
    """

    name: str
    value: ParamValue
    source: str
    runtime: bool


@dataclass(frozen=True)
class StepReport:
    """One step of a chain; of the engine's step, `contract` is empty."""

    name: str
    contract: str
    tensors: tuple[BoundTensor, ...]
    sizes: Mapping[str, Value]
    params: tuple[BoundParam, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class BufferReport:
    """A buffer of the plan; `size_bytes` and `offset_bytes` within its region."""

    name: str
    region: str
    dtype: str
    shape: tuple[int, ...]
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class PipelineReport:
    """A pipeline file that was checked.

    Attributes:
        rule: name of the rule that fits, or empty where the file names a chain.
        notes: what the user is told at load.
        rule_place: file and line of the rule, or the pipeline file.
        classes: how many class names are known.
        region_bytes: memory by region.
    """

    pipeline: str
    executor: str
    batch: int
    frame: str
    engine: EngineInfo
    notes: tuple[str, ...]
    rule: str
    rule_place: str
    classes: int
    steps: tuple[StepReport, ...]
    region_bytes: Mapping[str, int]
    buffers: tuple[BufferReport, ...]


def describe_pipeline(loaded: Loaded) -> PipelineReport:
    """What a loaded pipeline file comes to; nothing is compiled or run."""
    plan, rule = loaded.plan, loaded.match.rule
    document = yamlfile.load(loaded.path)
    return PipelineReport(
        pipeline=str(loaded.path),
        executor=loaded.executor_name,
        batch=plan.batch,
        frame=plan.frame_layout,
        engine=loaded.engine.info,
        notes=loaded.notes,
        rule=rule.spec.name if rule else "",
        rule_place=rule.place if rule else document.file,
        classes=len(loaded.class_names),
        steps=tuple(
            _engine_step(loaded, step)
            if isinstance(step, EngineStep)
            else _patch_step(step, rule, document)
            for step in plan.steps
        ),
        region_bytes={region: plan.region_bytes(region) for region in REGIONS},
        buffers=tuple(
            BufferReport(b.name, b.region, b.dtype, b.shape, b.offset, b.nbytes)
            for b in plan.buffers.values()
        ),
    )


def _engine_step(loaded: Loaded, step: EngineStep) -> StepReport:
    sides = [("in", step.inputs), ("out", step.outputs)]
    buffers = loaded.plan.buffers
    tensors = tuple(
        BoundTensor(name, role, buffers[buffer].dtype, (buffers[buffer].shape,), (buffer,))
        for role, side in sides
        for name, buffer in side.items()
    )
    return StepReport(step.name, "", tensors, {}, (), ())


def _patch_step(step: PatchStep, rule: Rule | None, document: yamlfile.Document) -> StepReport:
    scratch = step.patch.spec.scratch
    return StepReport(
        name=step.name,
        contract=step.patch.label,
        tensors=tuple(
            BoundTensor(
                tensor.name,
                "scratch" if tensor.name in scratch else "out" if tensor.written else "in",
                tensor.dtype,
                tensor.shapes,
                tensor.buffers,
            )
            for tensor in step.tensors
        ),
        sizes=dict(step.sizes),
        params=tuple(_params(step, rule, document)),
        launches=step.launches,
    )


def _params(
    step: PatchStep, rule: Rule | None, document: yamlfile.Document
) -> Iterator[BoundParam]:
    at_runtime = {setting.name: setting.value for setting in step.settings}
    for name in step.patch.spec.params:
        source = "default"
        if rule and name in rule.spec.params.get(step.name, {}):
            source = _place(rule.document, (*rule.location, "params", step.name, name))
        if ("params", step.name, name) in document.values:
            source = _place(document, ("params", step.name, name))
        value = at_runtime[name] if name in at_runtime else step.params[name]
        yield BoundParam(name, value, source, name in at_runtime)


def _place(document: yamlfile.Document, where: yamlfile.Location) -> str:
    return f"{document.file}:{document.values[where][0]}"


@dataclass(frozen=True)
class PatchReport:
    """A contract, its expressions as they are written.

    Attributes:
        inputs, outputs, scratch: name to `port`, or to element types and shape.
        launches: entry to what it is launched over.
    """

    name: str
    kind: str
    summary: str
    contract: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    params: tuple[Mapping[str, object], ...]
    sizes: Mapping[str, str]
    where: tuple[str, ...]
    scratch: Mapping[str, str]
    launches: tuple[str, ...]
    tolerance: Mapping[str, str]


def describe_patch(patch: Patch) -> PatchReport:
    """A contract as plain data."""
    spec = patch.spec
    return PatchReport(
        name=patch.name,
        kind=spec.kind,
        summary=spec.summary,
        contract=patch.label,
        inputs={name: _tensor(one) for name, one in spec.inputs.items()},
        outputs={name: _tensor(one) for name, one in spec.outputs.items()},
        params=tuple(
            {"name": name, **one.model_dump(exclude_defaults=True)}
            for name, one in spec.params.items()
        ),
        sizes={name: str(size) for name, size in spec.sizes.items()},
        where=tuple(map(str, spec.where)),
        scratch={name: _tensor(one) for name, one in spec.scratch.items()},
        launches=tuple(
            f"{one.entry}{' over ' if one.over else ' in blocks '}"
            f"{format_shape(one.over or one.grid)}, {' x '.join(map(str, one.block))} threads"
            for one in spec.launch
        ),
        tolerance={
            name: one if isinstance(one, str) else f"atol {one.atol:g}, rtol {one.rtol:g}"
            for name, one in spec.tolerance.items()
        },
    )


def _tensor(spec: TensorSpec | str) -> str:
    if isinstance(spec, str):
        return spec
    levels = f", one a level of {', '.join(spec.levels)}" if spec.levels else ""
    return f"{'|'.join(spec.dtype)} {format_shape(spec.shape)}{levels}"


@dataclass(frozen=True)
class RuleReport:
    """A rule of a registry, its shapes as they are written."""

    name: str
    help: str
    place: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    where: tuple[str, ...]
    metadata: Mapping[str, str]
    chain: tuple[str, ...]
    params: Mapping[str, Mapping[str, object]]


def describe_rule(rule: Rule) -> RuleReport:
    """A rule as plain data."""
    spec = rule.spec
    return RuleReport(
        name=spec.name,
        help=spec.help,
        place=rule.place,
        inputs={name: format_shape(one.shape) for name, one in spec.inputs.items()},
        outputs={name: format_shape(one.shape) for name, one in spec.outputs.items()},
        where=tuple(map(str, spec.where)),
        metadata={
            key: one if isinstance(one, str) else format_shape(one)
            for key, one in spec.metadata.items()
        },
        chain=spec.chain,
        params=spec.params,
    )


def find_rule(info: EngineInfo, registries: Sequence[Path]) -> tuple[RuleReport | None, str]:
    """The rule that fits an engine, or None and why.

    Args:
        info: the engine; a batch that it leaves open counts as 1.
        registries: files besides the built-in one.
    """
    inputs, outputs = map(_with_batch, (info.inputs, info.outputs))
    if not outputs:
        return None, "its outputs are not known"
    for tensor in inputs:
        if -1 in tensor.shape:
            hint = "a pipeline file can set them with 'input_shape' or 'profile'"
            return None, f"sizes are left open by input {tensor}; {hint}"
    for tensor in outputs:
        if -1 in tensor.shape:
            hint = "'trtpatch check' on a pipeline file with this engine measures them"
            return None, f"the file does not tell all sizes of output {tensor}; {hint}"
    try:
        found = match(Catalog(registries).rules, inputs, outputs, info.metadata).rule
    except MatchError as error:
        return None, str(error)
    return (describe_rule(found), "") if found else (None, "")


def _with_batch(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors with 1 in the first axis where that is open."""
    return tuple(
        replace(one, shape=(1, *one.shape[1:])) if one.shape[:1] == (-1,) else one
        for one in tensors
    )
