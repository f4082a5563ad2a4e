"""What is said where an engine's tensors do not fit a rule, or fit in more than one way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtpatch import builtin
from trtpatch.assign import assignments, is_named
from trtpatch.catalog import Rule
from trtpatch.engines import Tensor
from trtpatch.spec.dims import format_shape, solve_shapes
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.registry import TensorPattern
from trtpatch.spec.yamlfile import written

_MOST_SHOWN = 4
_Names = Mapping[str, tuple[str, ...]]


def nearest_rules(
    misses: Sequence[tuple[Rule, str]],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    sizes: Mapping[str, Value],
) -> list[str]:
    """The rules that an engine is nearest to, the user's own first, with what is in the way."""
    lines = []
    for rule, error in misses:
        distance, reason = why_not(rule, inputs, outputs, sizes)
        why = f"{reason} ({patterns_shown(rule.spec.outputs)})" if reason else error
        lines.append((rule.builtin, distance, f"  {rule.shown}: {why}"))
    return [line for _, _, line in sorted(lines, key=lambda one: one[:2])][:_MOST_SHOWN]


def why_not(
    rule: Rule, inputs: Sequence[Tensor], outputs: Sequence[Tensor], sizes: Mapping[str, Value]
) -> tuple[int, str]:
    """How far an engine is from a rule, and the first thing that is in the way.

    The number of outputs counts most, then that of their axes, then sizes and names.

    Args:
        rule: which does not fit.
        inputs, outputs: the engine's tensors.
        sizes: what is known of the symbols beforehand.
    """
    spec = rule.spec
    distance, count = _count(spec.outputs, len(outputs))
    ranks = {len(one.shape) for one in spec.outputs.values()}
    distance += 2 * sum(min(abs(len(one.shape) - rank) for rank in ranks) for one in outputs)
    reasons = []
    patterns = [*spec.inputs.items(), *spec.outputs.items()]
    pools = [inputs] * len(spec.inputs) + [outputs] * len(spec.outputs)
    for (name, pattern), pool in zip(patterns, pools, strict=True):
        if any(True for _ in assignments([(name, pattern)], [pool], sizes, (), ())):
            continue
        rank = [tensor for tensor in pool if len(tensor.shape) == len(pattern.shape)]
        distance += 2
        reasons.append(f"{name}{_why_none(pattern, rank, sizes)}")
    found = next(assignments(patterns, pools, sizes, (), ()), None)
    if found:
        names, known = found
        reasons += [_why_false(one, known) for one in spec.where if not _holds(one, known)]
        used = {name for group in names.values() for name in group}
        left = ", ".join(str(one) for one in outputs if one.name not in used)
        if left and not reasons:
            return distance, f"{left} is left over"
    elif not reasons:
        reasons.append("no tensors agree on the sizes that go by one name")
    reasons = [count, *reasons] if count else reasons
    return distance + bool(reasons), reasons[0] if reasons else ""


def _count(patterns: Mapping[str, TensorPattern], given: int) -> tuple[int, str]:
    """How far the number of outputs is from one that a rule takes, and what it takes then."""
    wanted, groups = len(patterns), sum(bool(one.levels) for one in patterns.values())
    if not groups:
        off, text = abs(wanted - given), f"{wanted}"
    elif given < wanted:
        off, text = wanted - given, f"{wanted} or more"
    else:
        off, text = given % wanted if groups == wanted else 0, f"a multiple of {wanted}"
    return 3 * off, f"wants {text} output{'s' * (wanted != 1)}, not {given}" if off else ""


def _why_none(pattern: TensorPattern, tensors: Sequence[Tensor], sizes: Mapping[str, Value]) -> str:
    """Why none of these tensors, which have the right number of axes, fits a pattern."""
    if not tensors:
        return f": none has {len(pattern.shape)} axes"
    called = [one for one in tensors if any(is_named(name, one) for name in pattern.tensor)]
    if not called:
        return f": none is called {' or '.join(pattern.tensor)}"
    nearest = min(called, key=lambda one: _far(pattern, one))
    try:
        solve_shapes([(nearest.name, pattern.shape, nearest.shape)], sizes)
    except ValueError as error:
        return f" is not {nearest}: {str(error).rpartition(': ')[2]}"
    return f" is {' or '.join(pattern.dtype)}, not {nearest}"


def _far(pattern: TensorPattern, tensor: Tensor) -> int:
    """How far a tensor's sizes are from those that are written as numbers."""
    pairs = zip(pattern.shape, tensor.shape, strict=True)
    return sum(abs(size - int(dim.text)) for dim, size in pairs if dim.text.isdecimal())


def _holds(condition: Expression, known: Mapping[str, Value]) -> bool:
    try:
        return bool(condition.evaluate(known))
    except ValueError:
        return False


def _why_false(condition: Expression, known: Mapping[str, Value]) -> str:
    values = ", ".join(f"{n} = {known[n]}" for n in sorted(condition.names & known.keys()))
    return f"'{condition}' does not hold: {values}"


def patterns_shown(patterns: Mapping[str, TensorPattern]) -> str:
    """`head [N, A, 5 + C]`."""
    return "; ".join(f"{name} {format_shape(one.shape)}" for name, one in patterns.items())


def describe_rule(rule: Rule) -> str:
    """A line for a pipeline file, with what the rule is for."""
    wanted = ", ".join(f"{name} {format_shape(p.shape)}" for name, p in rule.spec.outputs.items())
    return f"rule: {rule.spec.name} # {wanted}: {rule.spec.help} ({builtin.shown(rule.place)})"


def ask_which(ways: Sequence[_Names], key: str) -> str:
    """Ask for names where tensors fit in several ways, with lines of which one can be pasted.

    Args:
        ways: names of the engine's tensors under those of the patches.
        key: `bind` of a pipeline file, or `tensor` of a rule.
    """
    lines = []
    for way in ways:
        given = {
            name: names[0] if len(names) == 1 else list(names)
            for name, names in way.items()
            if any(other[name] != names for other in ways)
        }
        line = {key: given} if key == "bind" else {name: {key: one} for name, one in given.items()}
        lines.append(f"  {written(line)[1:-1]}")
    some = list(dict.fromkeys(lines))
    shown = "\n".join(some[:_MOST_SHOWN])
    where = "the pipeline file" if key == "bind" else "the rule"
    return f"It fits in {len(some)} ways; say in {where} which is meant:\n{shown}"
