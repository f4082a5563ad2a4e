"""Every way to give patterns the tensors of an engine, by trying."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from trtpatch.engines import Tensor
from trtpatch.spec.dims import solve_shapes
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.ports import FRAMEWORK_SIZES
from trtpatch.spec.registry import TensorPattern

_COMMON_SYMBOLS = frozenset({"N", *FRAMEWORK_SIZES})
"""What the contracts of a chain agree on."""

_Option = tuple[tuple[str, ...], Mapping[str, Value]]
"""Names of the tensors that a pattern may get, and the symbols' values then."""


def assignments(
    patterns: Sequence[tuple[str, TensorPattern]],
    pools: Sequence[Sequence[Tensor]],
    symbols: Mapping[str, Value],
    where: Sequence[Expression],
    begins: Collection[str],
    used: frozenset[str] = frozenset(),
) -> Iterator[tuple[dict[str, tuple[str, ...]], Mapping[str, Value]]]:
    """Every way to give each pattern its tensors so that shapes and conditions hold.

    Args:
        patterns: by the names that patches use.
        pools: for each pattern, the tensors that it may get.
        symbols: values known beforehand.
        where: conditions on the symbols.
        begins: names of patterns at which a contract's own symbols begin.
        used: names of tensors that are given away.

    Yields:
        Names of the tensors of each pattern, and the symbols' values.
    """
    if not patterns:
        try:
            if all(condition.evaluate(symbols) for condition in where):
                yield {}, symbols
        except ValueError:
            pass
        return
    (name, pattern), rest = patterns[0], patterns[1:]
    if name in begins:
        symbols = {name: value for name, value in symbols.items() if name in _COMMON_SYMBOLS}
    free = [tensor for tensor in pools[0] if tensor.name not in used]
    options = (_groups if pattern.levels else _singles)(pattern, free, symbols)
    for names, known in options:
        taken = used.union(names)
        for more, final in assignments(rest, pools[1:], known, where, begins, taken):
            yield {name: names, **more}, final


def _singles(
    pattern: TensorPattern, tensors: Sequence[Tensor], symbols: Mapping[str, Value]
) -> list[_Option]:
    """Each tensor that fits, with what is then known."""
    fitting = ((tensor.name, _fits(pattern, tensor, symbols)) for tensor in tensors)
    return [((name,), found) for name, found in fitting if found is not None]


def _groups(
    pattern: TensorPattern, tensors: Sequence[Tensor], symbols: Mapping[str, Value]
) -> list[_Option]:
    """Groups of tensors that agree on all symbols but those of the levels, the largest first.

    A group has all the tensors that agree. The symbols of the levels become tuples, one value a
    level; those of two groups must be the same. A plain number of that name is another patch's.
    """
    shared = {name: value for name, value in symbols.items() if name not in pattern.levels}
    members: dict[frozenset[tuple[str, Value]], list[tuple[str, dict[str, Value]]]] = {}
    for tensor in sorted(tensors, key=lambda one: -math.prod(one.shape)):
        found = _fits(pattern, tensor, shared)
        if found is not None:
            own = {name: found.pop(name) for name in pattern.levels if name in found}
            members.setdefault(frozenset(found.items()), []).append((tensor.name, own))
    options: list[_Option] = []
    for agreed, group in members.items():
        levels = {name: tuple(own[name] for _, own in group) for name in group[0][1]}
        before = {name: symbols[name] for name in levels if isinstance(symbols.get(name), tuple)}
        if {**levels, **before} == levels:
            names = tuple(name for name, _ in group)
            options.append((names, {**dict(agreed), **levels}))  # type: ignore[dict-item]
    return options


def is_named(pattern: str, tensor: Tensor) -> bool:
    """Whether a tensor's own name, or a pattern for it, is meant."""
    return tensor.name == pattern or fnmatch.fnmatchcase(tensor.name, pattern)


def _fits(
    pattern: TensorPattern, tensor: Tensor, symbols: Mapping[str, Value]
) -> dict[str, Value] | None:
    if not any(is_named(one, tensor) for one in pattern.tensor):
        return None
    if pattern.dtype and tensor.dtype not in pattern.dtype:
        return None
    try:
        return solve_shapes([(tensor.name, pattern.shape, tensor.shape)], symbols)
    except ValueError:
        return None
