"""The chain of a pipeline file: its patches, the engine's tensors that they get, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from trtpatch.catalog import Catalog, Patch
from trtpatch.engines import EngineInfo, Tensor
from trtpatch.errors import MatchError, TrtpatchError
from trtpatch.match import Match, all_fitting, fit, match, match_chain, model_sizes
from trtpatch.mismatch import why_not
from trtpatch.modelshape import ModelShapes
from trtpatch.params import check_params, check_rule_params
from trtpatch.pipelinefile import blamed, registry_hint
from trtpatch.plan import Plan
from trtpatch.planner import make_plan
from trtpatch.rulenotes import rule_notes
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.registry import ENGINE
from trtpatch.spec.yamlfile import Document

_LONGEST_TRIED = 16
"""Entries of a chain in whose places other patches are tried."""


@dataclass(frozen=True)
class Chain:
    """A chain that was found, to be bound to the engine in one shape or another.

    Attributes:
        spec: the pipeline file, and `document` where it says so.
        catalog: where rule and patches are from.
        info: the engine that it was found for.
        match: the rule, and the engine's tensors under the patches' names.
        patches: in order, None in the engine's place.
        params: what differs from the contracts' defaults, by patch.
    """

    spec: PipelineSpec
    document: Document
    catalog: Catalog
    info: EngineInfo
    match: Match
    patches: Sequence[Patch | None]
    params: dict[str, dict[str, ParamValue]] = field(default_factory=dict)

    @classmethod
    def find(
        cls, spec: PipelineSpec, document: Document, catalog: Catalog, info: EngineInfo
    ) -> Chain:
        """Find the chain that a pipeline file asks for, or that fits the engine.

        Raises:
            SpecError: a contract, or a value of a parameter, has mistakes.
            MatchError: a name is none, or the engine's tensors do not fit.
        """
        try:
            return cls._find(spec, document, catalog, info)
        except MatchError as error:
            hint = registry_hint(document, spec, lambda more: cls._find(spec, document, more, info))
            hint = hint or _instead(spec, document, catalog, info)
            raise MatchError(f"{error}{hint}") from None

    @classmethod
    def _find(
        cls, spec: PipelineSpec, document: Document, catalog: Catalog, info: EngineInfo
    ) -> Chain:
        found = _match(spec, document, catalog, info)
        patches = _patches(spec, document, catalog, found)
        if found.rule is not None and not found.rule.spec.inputs:
            found = replace(found, inputs=_inputs(patches, info))
        chain = cls(spec, document, catalog, info, found, patches)
        if found.rule is not None:
            check_rule_params(
                found.rule,
                found.symbols,
                chain.named,
                into=chain.params,
                stand_in=spec.chain is not None,
            )
        check_params(document, (), spec.params, chain.named, into=chain.params)
        return chain

    @property
    def named(self) -> list[Patch]:
        """The patches alone."""
        return [patch for patch in self.patches if patch is not None]

    def bind(self, info: EngineInfo, batch: int) -> Plan:
        """Bind it to an engine in one shape.

        Raises:
            MatchError: a patch cannot run in that shape.
        """
        try:
            return self._bind(info, batch)
        except MatchError as error:
            hint = _instead(self.spec, self.document, self.catalog, info)
            raise MatchError(f"{error}{hint}") from None

    def _bind(self, info: EngineInfo, batch: int) -> Plan:
        return make_plan(
            self.patches,
            inputs=_named(self.match.inputs, info.inputs),
            outputs=_named(self.match.outputs, info.outputs),
            params=self.params,
            batch=batch,
            frame_layout=self.spec.frame,
        )

    def notes(self) -> Iterator[str]:
        """What the user is told of rules."""
        fitting: list[Match] = []
        if self.match.rule is None:
            inputs, outputs, metadata = self.info.inputs, self.info.outputs, self.info.metadata
            fitting, _ = all_fitting(self.catalog.rules, inputs, outputs, metadata)
        return rule_notes(self.spec, self.match, fitting, self.named, self.params)


def _match(spec: PipelineSpec, document: Document, catalog: Catalog, info: EngineInfo) -> Match:
    inputs, outputs = info.inputs, info.outputs
    if spec.rule is None and spec.chain is None:
        return match(catalog.rules, inputs, outputs, info.metadata)
    with blamed(document, "rule"):
        rule = catalog.rule(spec.rule) if spec.rule is not None else None
    patches = []
    for index, name in enumerate(spec.chain or ()):
        with blamed(document, "chain", index):
            patches += [catalog.patch(name)] if name != ENGINE else []
    try:
        if rule is not None:
            found = fit(rule, inputs, outputs, info.metadata, named=True)
            return replace(found, chain=spec.chain or found.chain)
        return match_chain(spec.chain or (), patches, spec.bind, inputs, outputs)
    except MatchError as error:
        who, why = f"the chain of {document.file}", ""
        if rule is not None:
            _, why = why_not(rule, inputs, outputs, model_sizes(inputs))
            who, why = f"rule {rule.shown}", f"{why}; " if why else ""
        takes, gives = (", ".join(map(str, side)) for side in (inputs, outputs))
        raise MatchError(
            f"{who} does not fit {info.path}, which takes {takes} and gives {gives}: {why}{error}"
        ) from None


def _patches(
    spec: PipelineSpec, document: Document, catalog: Catalog, found: Match
) -> list[Patch | None]:
    rule = found.rule if spec.chain is None else None
    document, where = (rule.document, rule.location) if rule else (document, ())
    patches: list[Patch | None] = []
    for index, name in enumerate(found.chain):
        with blamed(document, *where, "chain", index):
            patches.append(None if name == ENGINE else catalog.patch(name))
    return patches


def _inputs(patches: Sequence[Patch | None], info: EngineInfo) -> Mapping[str, tuple[str, ...]]:
    """The engine's inputs under the names that patches before it have for them."""
    before = [patch for patch in patches[: patches.index(None)] if patch is not None]
    chain = (*(patch.name for patch in before), ENGINE)
    with suppress(MatchError):
        return match_chain(chain, before, {}, info.inputs, ()).inputs
    return {}


def _instead(spec: PipelineSpec, document: Document, catalog: Catalog, info: EngineInfo) -> str:
    """What would do instead of a user's own chain: rules, or other patches of a kind."""
    chain = spec.chain
    if chain is None:
        return ""
    fitting, _ = all_fitting(catalog.rules, info.inputs, info.outputs, info.metadata)
    lines = [
        f"\nRule {one.rule.shown} fits, with the chain {', '.join(one.chain)}"
        for one in fitting
        if one.rule is not None and one.chain != chain
    ]
    batch = ModelShapes(info, batch=None, rectangular=False).largest.batch
    for index, name in enumerate(chain if len(chain) <= _LONGEST_TRIED else ()):
        if name not in catalog.names:
            continue
        would = []
        for other in catalog.names:
            with suppress(TrtpatchError):
                if other == name or catalog.patch(other).spec.kind != catalog.patch(name).spec.kind:
                    continue
                names = (*chain[:index], other, *chain[index + 1 :])
                params = {one: values for one, values in spec.params.items() if one in names}
                changed = spec.model_copy(update={"chain": names, "params": params, "bind": {}})
                Chain._find(changed, document, catalog, info)._bind(info, batch)
                would.append(other)
        if would:
            lines.append(f"\nIn the place of {name} these would fit: {', '.join(would)}")
            break
    return "".join(lines)


def _named(
    names: Mapping[str, tuple[str, ...]], tensors: Sequence[Tensor]
) -> dict[str, tuple[Tensor, ...]]:
    """Tensors under the names of the patches; one that no patch names goes by its own."""
    by_name = {tensor.name: tensor for tensor in tensors}
    named = {name: tuple(by_name.pop(one) for one in group) for name, group in names.items()}
    return {**named, **{name: (tensor,) for name, tensor in by_name.items()}}
