"""Patches and rules as plain data to print or to keep, and the rule that fits an engine file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trtpatch.catalog import Catalog, Patch, Rule
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.errors import MatchError
from trtpatch.match import match
from trtpatch.spec.dims import format_shape
from trtpatch.spec.patch import TensorSpec
from trtpatch.spec.ports import PORTS


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
class PortReport:
    """A port, and which kinds of patches meet at it.

    Attributes:
        tensors: the name in `Args` to element type and shape, and what the elements are.
        result: whether the pipeline's caller gets it.
        given_by, taken_by: kinds.
    """

    name: str
    help: str
    tensors: Mapping[str, tuple[str, str]]
    result: bool
    given_by: tuple[str, ...]
    taken_by: tuple[str, ...]


def describe_ports(patches: Sequence[PatchReport]) -> list[PortReport]:
    """Every port as plain data, and which kinds of the given patches meet at it."""
    return [
        PortReport(
            name=port.name,
            help=port.help,
            tensors={
                field: (f"{one.dtype} {format_shape(one.shape)}", one.help)
                for field, one in port.fields()
            },
            result=port.result,
            given_by=tuple(sorted({p.kind for p in patches if port.name in p.outputs})),
            taken_by=tuple(sorted({p.kind for p in patches if port.name in p.inputs})),
        )
        for port in PORTS.values()
    ]


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
    usual: Mapping[str, int]
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
        usual=spec.usual,
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
