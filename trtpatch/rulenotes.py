"""What the user is told of the rule: what it goes before, and what of it plays no part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from trtpatch.catalog import Patch
from trtpatch.errors import SpecError
from trtpatch.match import Match
from trtpatch.params import check_rule_params
from trtpatch.planner import Params
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.pipeline import PipelineSpec
from trtpatch.spec.yamlfile import written


def rule_notes(
    spec: PipelineSpec,
    match: Match,
    fitting: Sequence[Match],
    patches: Sequence[Patch],
    params: Params,
) -> Iterator[str]:
    """Say which rules stand back, and which parameters of rules are not applied.

    Args:
        spec: the pipeline file.
        match: the rule that holds, if one does.
        fitting: where the file has a chain and no rule, the rules that fit the engine.
        patches: the chain.
        params: what is given for them, by patch.
    """
    names = {patch.name for patch in patches}
    if match.rule is not None:
        for other in match.behind:
            yield f"rule {match.rule.shown} goes before {other.shown}, which fits as well"
        for name in sorted(match.rule.spec.params.keys() - names):
            yield (
                f"rule {match.rule.shown} has parameters of {name}, which the chain has not; they"
                " play no part"
            )
        return
    best = max(reversed(fitting), key=lambda one: len(names.intersection(one.chain)), default=None)
    left = _not_applied(best, patches, spec.params, params) if best else {}
    if best and best.rule and left:
        yield (
            f"rule {best.rule.shown} fits this engine, and these parameters of it are not applied,"
            f" since the file has a chain alone: {written(left)[1:-1]}. Write 'rule:"
            f" {best.rule.spec.name}' beside 'chain' to apply them, or give 'params' of your own"
        )


def _not_applied(
    match: Match,
    patches: Sequence[Patch],
    given: Mapping[str, Mapping[str, object]],
    params: Params,
) -> dict[str, dict[str, object]]:
    """A rule's parameters that differ from what holds and of which the pipeline file is silent."""
    assert match.rule is not None
    by_name = {patch.name: patch for patch in patches}
    ruled: dict[str, dict[str, ParamValue]] = {}
    with suppress(SpecError):  # the chain's patch of that name has other parameters
        check_rule_params(match.rule, match.symbols, patches, into=ruled, stand_in=True)
    left: dict[str, dict[str, object]] = {}
    for name, values in ruled.items():
        for key, value in values.items():
            default = by_name[name].spec.params[key]
            holds = params.get(name, {}).get(key, default.check(default.default))
            if value != holds and key not in given.get(name, {}):
                shown = list(value) if isinstance(value, tuple) else value
                left.setdefault(name, {})[key] = shown
    return left
