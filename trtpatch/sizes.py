"""From the tensors that a patch takes to all the sizes of its contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trtpatch.catalog import Patch
from trtpatch.errors import MatchError
from trtpatch.plan import Tensor
from trtpatch.spec.dims import solve_shapes
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import ParamValue, PatchSpec, TensorSpec
from trtpatch.spec.ports import PORTS, PortTensor
from trtpatch.spec.yamlfile import Location


def solve_sizes(
    patch: Patch,
    inputs: Sequence[Tensor],
    params: Mapping[str, ParamValue],
    *,
    known: Mapping[str, Value],
    outputs: Mapping[str, tuple[int, ...]],
) -> dict[str, Value]:
    """Find the value of every symbol, derived size and whole-number parameter.

    Args:
        patch: whose.
        inputs: the tensors that it takes, a port's one by one.
        params: values of its parameters.
        known: sizes that all patches share, such as `N`.
        outputs: real shapes of those outputs that have one already, by name.

    Raises:
        MatchError: a shape, or a rule of the contract, does not hold; both sides are named.
    """
    whole = [name for name in params if patch.spec.params[name].type in ("int", "[int]")]
    sizes = dict(known)
    sizes.update({name: params[name] for name in whole})  # type: ignore[misc]
    sizes.update(counts(inputs, params))
    try:
        found = _solve(patch.spec, inputs, sizes, outputs)
    except ValueError as error:
        raise MatchError(patch.problem(("inputs",), str(error))) from None
    return _hold_rules(patch, found)


def counts(inputs: Sequence[Tensor], params: Mapping[str, ParamValue]) -> dict[str, Value]:
    """How many levels a group has, and how many values a list, as `Args` has them."""
    found: dict[str, Value] = {f"{t.name}_count": len(t.buffers) for t in inputs if t.grouped}
    lists = {name: value for name, value in params.items() if isinstance(value, tuple)}
    return {**found, **{f"{name}_count": len(value) for name, value in lists.items()}}


def size_of(patch: Patch, where: Location, dim: Expression, sizes: Mapping[str, Value]) -> int:
    """The value of one size of a patch, which stands at `where` in its contract.

    Raises:
        MatchError: it has none, or is negative.
    """
    try:
        value = dim.evaluate(sizes)
        if isinstance(value, tuple) or value < 0:
            raise ValueError(f"'{dim}' is {value}, not a size")
    except ValueError as error:
        raise MatchError(patch.problem(where, f"{where[-1]}: {error}")) from None
    return value


def written_shape(tensor: PortTensor) -> tuple[Expression, ...]:
    """The shape of a port's tensor as a contract would have it."""
    return tuple(Expression.parse(axis) for axis in tensor.shape)


def _solve(
    spec: PatchSpec,
    inputs: Sequence[Tensor],
    sizes: Mapping[str, Value],
    outputs: Mapping[str, tuple[int, ...]],
) -> dict[str, Value]:
    """The symbols of the shapes: those of inputs first, in the order of the contract."""
    found = {tensor.name: tensor for tensor in inputs}
    for name, one in spec.inputs.items():
        if isinstance(one, TensorSpec):
            sizes = _solve_levels(found[name], one, sizes)
    shapes = [
        (field, written_shape(one), found[field].shapes[0])
        for name in spec.inputs
        if name in PORTS
        for field, one in PORTS[name].fields()
        if not one.ragged
    ]
    for name, one in spec.outputs.items():
        if isinstance(one, TensorSpec) and name in outputs:
            shapes.append((name, one.shape, outputs[name]))
    return solve_shapes(shapes, sizes)


def _solve_levels(
    tensor: Tensor, spec: TensorSpec, symbols: Mapping[str, Value]
) -> dict[str, Value]:
    """Solve one input; the symbols of a group's levels become tuples, one value a level."""
    shared = {name: value for name, value in symbols.items() if name not in spec.levels}
    levels: dict[str, list[int]] = {name: [] for name in spec.levels}
    for shape in tensor.shapes:
        found = solve_shapes([(tensor.name, spec.shape, shape)], shared)
        for name in spec.levels:
            levels[name].append(found.pop(name))  # type: ignore[arg-type]
        shared = found
    for name, values in levels.items():
        before = symbols.get(name)
        if before is not None and before != tuple(values):
            raise ValueError(
                f"the levels of {tensor.name} have {name} = {tuple(values)}, those of an earlier"
                f" input {before}"
            )
        shared[name] = tuple(values)
    return shared


def _hold_rules(patch: Patch, symbols: dict[str, Value]) -> dict[str, Value]:
    """`symbols` with the contract's `sizes`, for which its `where` holds."""
    sizes = dict(symbols)
    where: Location = ()
    try:
        for name, size in patch.spec.sizes.items():
            where = ("sizes", name)
            value = size.evaluate(sizes)
            if sizes.get(name, value) != value:
                raise ValueError(f"{name} is {sizes[name]} in a shape, but '{size}' {value}")
            sizes[name] = value
        for index, condition in enumerate(patch.spec.where):
            where = ("where", index)
            if not condition.evaluate(sizes):
                known = ", ".join(f"{n} = {sizes[n]}" for n in sorted(condition.names))
                raise ValueError(f"'{condition}' does not hold: {known}")
    except ValueError as error:
        raise MatchError(patch.problem(where, str(error))) from None
    return sizes
