"""Parameters that a rule or a pipeline file gives, checked against the contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtpatch.catalog import Patch, Rule
from trtpatch.errors import SpecError
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.validate import choose
from trtpatch.spec.yamlfile import Document, Location


def check_params(
    document: Document,
    location: Location,
    given: Mapping[str, Mapping[str, Any]],
    patches: Sequence[Patch],
    *,
    into: dict[str, dict[str, ParamValue]],
    symbols: Mapping[str, Value] | None = None,
) -> None:
    """Check `params:` of a rule or pipeline file and put the values in `into`, by patch.

    Args:
        document: the file, and `location` of the mapping in it that has the key `params`.
        given: patch name to parameter name to value.
        patches: the chain.
        into: what is known so far; overwritten where a name stands again.
        symbols: where given, a whole number may be an expression of them.

    Raises:
        SpecError: a patch is not in the chain, has no such parameter, or the value is wrong.
    """
    by_name = {patch.name: patch for patch in patches}
    problems = []
    for name, values in given.items():
        where = (*location, "params", name)
        if name not in by_name:
            message = f"no patch {name!r} in the chain.{choose(name, by_name)}"
            problems.append(document.problem(where, message, at_key=True))
            continue
        params = by_name[name].spec.params
        for key, value in values.items():
            place = (*where, key)
            if key not in params:
                message = f"{name} has no parameter {key!r}.{choose(key, params)}"
                problems.append(document.problem(place, message, at_key=True))
                continue
            try:
                if symbols is not None and params[key].type == "int" and isinstance(value, str):
                    value = Expression.parse(value).evaluate(symbols)
                into.setdefault(name, {})[key] = params[key].check(value)
            except ValueError as error:
                problems.append(document.problem(place, f"{name}: {key}: {error}"))
    if problems:
        raise SpecError(*problems)


def check_rule_params(
    rule: Rule,
    symbols: Mapping[str, Value],
    patches: Sequence[Patch],
    *,
    into: dict[str, dict[str, ParamValue]],
    stand_in: bool,
) -> None:
    """Check the parameters that a rule gives, and put them in `into`, by patch.

    Args:
        rule: whose, and `symbols` the values that its own have in the engine.
        patches: the chain.
        into: as for `check_params`.
        stand_in: whether the chain stands in for the rule's own; what the rule gives for a patch
            that it has not is then left out.

    Raises:
        SpecError: see `check_params`.
    """
    names = {patch.name for patch in patches}
    given = rule.spec.params
    if stand_in:
        given = {name: values for name, values in given.items() if name in names}
    check_params(rule.document, rule.location, given, patches, into=into, symbols=symbols)
