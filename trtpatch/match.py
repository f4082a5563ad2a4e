"""The one rule that fits an engine's tensors, and which tensor goes by which name."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trtpatch.assign import assignments, is_named
from trtpatch.catalog import Patch, Rule
from trtpatch.engines import Tensor
from trtpatch.engines.metadata import Metadata
from trtpatch.errors import MatchError
from trtpatch.mismatch import ask_which, describe_rule, nearest_rules, patterns_shown
from trtpatch.modelshape import is_picture
from trtpatch.spec.dims import format_shape, solve_shapes
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import TensorSpec
from trtpatch.spec.registry import ENGINE, TensorPattern, Told
from trtpatch.spec.validate import choose


@dataclass(frozen=True)
class Match:
    """An engine's tensors under the names that a chain's patches use; a group has several.

    Attributes:
        symbols: values that the rule's symbols have in this engine.
        told: whether the engine's metadata say what the rule asks them for.
        behind: built-in rules that fit as well; the user's own goes before them.
    """

    chain: tuple[str, ...]
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, tuple[str, ...]]
    rule: Rule | None = None
    symbols: Mapping[str, Value] = field(default_factory=dict)
    told: bool = False
    behind: tuple[Rule, ...] = ()


_SILENT = Metadata()


def match(
    rules: Sequence[Rule],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    metadata: Metadata = _SILENT,
) -> Match:
    """The one rule that fits an engine.

    A rule of the user's own goes before built-in ones; of those that are left, one that the
    engine's metadata speak for goes before others.

    Raises:
        MatchError: no rule fits, or more than one; the message shows what was compared.
    """
    fitting, misses = all_fitting(rules, inputs, outputs, metadata)
    own = [one for one in fitting if one.rule and not one.rule.builtin]
    behind = tuple(one.rule for one in fitting if own and one.rule and one.rule.builtin)
    fitting = own or fitting
    fitting = [one for one in fitting if one.told] or fitting
    if len(fitting) == 1:
        return replace(fitting[0], behind=behind)
    sides = (("takes", inputs), ("gives", outputs))
    shown = "\n".join(f"  {verb} {tensor}" for verb, side in sides for tensor in side)
    if fitting:
        chosen = "\n".join(f"  {describe_rule(m.rule)}" for m in fitting if m.rule)
        raise MatchError(
            f"{len(fitting)} rules fit this engine, which\n{shown}\n"
            f"Name the one that is meant in the pipeline file:\n{chosen}"
        )
    tried = "\n".join(nearest_rules(misses, inputs, outputs, model_sizes(inputs)))
    raise MatchError(
        f"no rule fits this engine, which\n{shown}\n"
        f"The nearest of {len(misses)} rules ('trtpatch patches --rules' shows all):\n{tried}\n"
        "Add a rule to a registry of your own, or name a 'chain:' in the pipeline file."
    )


def all_fitting(
    rules: Sequence[Rule],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    metadata: Metadata = _SILENT,
) -> tuple[list[Match], list[tuple[Rule, str]]]:
    """Every rule that fits an engine; and the others, with what each wants."""
    fitting, misses = [], []
    for rule in rules:
        try:
            fitting.append(fit(rule, inputs, outputs, metadata))
        except MatchError as error:
            misses.append((rule, str(error)))
    return fitting, misses


def fit(
    rule: Rule,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    metadata: Metadata = _SILENT,
    *,
    named: bool = False,
) -> Match:
    """Give an engine's tensors the names of a rule; every output must have its place.

    Args:
        rule: the rule.
        inputs, outputs: the engine's tensors.
        metadata: what its exporter said.
        named: whether the user asks for this rule, whatever the exporter said.

    Raises:
        MatchError: they do not fit, or fit in more than one way.
    """
    spec = rule.spec
    told, symbols = _told(spec.metadata, metadata, refuses=not named)
    starts = [symbols] if named or told else []
    if not told:
        starts.append({**spec.usual, **symbols})
    names, symbols = _fit(
        spec.inputs, spec.outputs, inputs, outputs, spec.where, starts=starts, all_outputs=True
    )
    given, made = ({n: names[n] for n in side} for side in (spec.inputs, spec.outputs))
    return Match(spec.chain, given, made, rule, symbols, told)


def _told(
    wanted: Mapping[str, Told], metadata: Metadata, *, refuses: bool
) -> tuple[bool, Mapping[str, Value]]:
    """Whether an engine's metadata say all that a rule asks for, and values of symbols by them."""
    symbols: dict[str, Value] = {}
    for key, value in wanted.items():
        said = metadata.extra.get(key)
        if said is None:
            continue
        try:
            if not isinstance(value, str):
                symbols = solve_shapes([(key, value, json.loads(said))], symbols)
            elif said != value:
                raise ValueError
        except (TypeError, ValueError, RecursionError):
            if refuses:
                shown = value if isinstance(value, str) else format_shape(value)
                raise MatchError(f"wants metadata {key}: {shown}; they say {said}") from None
    return bool(wanted) and wanted.keys() <= metadata.extra.keys(), symbols


def match_chain(
    chain: tuple[str, ...],
    patches: Sequence[Patch],
    bind: Mapping[str, Sequence[str]],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
) -> Match:
    """Bind a chain that names no rule: the patches' own contracts serve as the rule.

    Args:
        chain: the chain's names.
        patches: its patches.
        bind: a patch's tensor name to the engine's names of it, or patterns for these.
        inputs, outputs: the engine's tensors.

    Raises:
        MatchError: the tensors do not fit, or fit in more than one way.
    """
    made = {name for patch in patches for name in patch.spec.outputs}
    gives: dict[str, TensorPattern] = {}
    takes: dict[str, TensorPattern] = {}
    begins: set[str] = set()
    for index, patch in enumerate(patches):
        before = index < chain.index(ENGINE)
        own = _patterns(patch.spec.outputs if before else patch.spec.inputs, bind)
        known = gives.keys() if before else takes.keys() | made
        own = {name: pattern for name, pattern in own.items() if name not in known}
        (gives if before else takes).update(own)
        begins.update(list(own)[:1])
    unknown = sorted(bind.keys() - gives.keys() - takes.keys())
    if unknown:
        raise MatchError(
            f"'bind' names {unknown[0]!r}, which no patch of the chain takes from the engine or"
            f" gives to it.{choose(unknown[0], [*gives, *takes])}"
        )
    for name, wanted in bind.items():
        tensors = inputs if name in gives else outputs
        for one in wanted:
            if not any(is_named(one, tensor) for tensor in tensors):
                hint = choose(one, [tensor.name for tensor in tensors])
                raise MatchError(f"'bind' gives {name} {one!r}, which the engine has not.{hint}")
    names, _ = _fit(gives, takes, inputs, outputs, (), begins=begins)
    for name, wanted in bind.items():
        for tensor in (*inputs, *outputs):
            if tensor.name in wanted and tensor.name not in names[name]:
                raise MatchError(f"'bind' gives {name} {tensor}, which does not go with the others")
    return Match(chain, {n: names[n] for n in gives}, {n: names[n] for n in takes})


def _patterns(
    tensors: Mapping[str, object], bind: Mapping[str, Sequence[str]]
) -> dict[str, TensorPattern]:
    return {
        name: TensorPattern(
            shape=spec.shape,
            tensor=tuple(bind.get(name, ["*"])),
            dtype=spec.dtype,
            levels=spec.levels,
        )
        for name, spec in tensors.items()
        if isinstance(spec, TensorSpec)
    }


def model_sizes(inputs: Sequence[Tensor]) -> dict[str, Value]:
    """`model_H` and `model_W`: the size in pixels of the first input that is a picture."""
    for tensor in inputs:
        if is_picture(tensor):
            return {"model_H": tensor.shape[2], "model_W": tensor.shape[3]}
    return {}


def _fit(
    gives: Mapping[str, TensorPattern],
    takes: Mapping[str, TensorPattern],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    where: Sequence[Expression],
    *,
    starts: Sequence[Mapping[str, Value]] = ({},),
    all_outputs: bool = False,
    begins: Collection[str] = (),
) -> tuple[dict[str, tuple[str, ...]], Mapping[str, Value]]:
    """The one way to give each pattern its tensors, and the symbols' values.

    What is known of the symbols beforehand is tried in the order of `starts`. The symbols of a
    contract are its own: `begins` has the first pattern of each.
    """
    patterns = [*gives.items(), *takes.items()]
    pools = [inputs] * len(gives) + [outputs] * len(takes)
    sizes = model_sizes(inputs)
    for known in starts:
        found = list(assignments(patterns, pools, {**sizes, **known}, where, begins))
        if found:
            break
    wanted = patterns_shown(dict(patterns))
    if not found:
        condition = f" where {', '.join(map(str, where))}" if where else ""
        raise MatchError(f"wants {wanted}{condition}")
    if all_outputs:
        spare = [_left_over(outputs, [names[name] for name in takes]) for names, _ in found]
        found = [one for one, left in zip(found, spare, strict=True) if not left]
        if not found:
            extra = ", ".join(map(str, spare[0]))
            raise MatchError(f"wants {wanted}, and {extra} is left over")
    if len({tuple(sorted(names.items())) for names, _ in found}) > 1:
        ways = [names for names, _ in found]
        raise MatchError(f"wants {wanted}. {ask_which(ways, 'tensor' if all_outputs else 'bind')}")
    return found[0]


def _left_over(outputs: Sequence[Tensor], used: Sequence[tuple[str, ...]]) -> list[Tensor]:
    names = {name for group in used for name in group}
    return [tensor for tensor in outputs if tensor.name not in names]
