"""What a pipeline file comes to, as plain data to print or to keep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trtpatch.catalog import Rule
from trtpatch.engines import EngineInfo
from trtpatch.loaded import Loaded
from trtpatch.plan import REGIONS, EngineStep, Launch, PatchStep
from trtpatch.spec import yamlfile
from trtpatch.spec.expressions import Value
from trtpatch.spec.patch import ParamValue


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
        own_chain: whether the pipeline file says the chain, beside a rule or alone.
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
    own_chain: bool
    classes: int
    steps: tuple[StepReport, ...]
    region_bytes: Mapping[str, int]
    buffers: tuple[BufferReport, ...]


def describe_pipeline(loaded: Loaded) -> PipelineReport:
    """What a loaded pipeline file comes to; nothing is compiled or run."""
    plan, rule = loaded.plan, loaded.match.rule
    document = loaded.document
    return PipelineReport(
        pipeline=str(loaded.path),
        executor=loaded.executor_name,
        batch=plan.batch,
        frame=plan.frame_layout,
        engine=loaded.engine.info,
        notes=loaded.notes,
        rule=rule.spec.name if rule else "",
        rule_place=rule.place if rule else document.file,
        own_chain=loaded.spec.chain is not None,
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
