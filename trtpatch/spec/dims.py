"""Shapes as they are written, and the symbols that make them equal to real ones.

`4 + C` meets 84 and gives `C = 80`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, InstanceOf, WithJsonSchema

from trtpatch.spec.expressions import Expression, Value

Dim = Annotated[
    InstanceOf[Expression],
    BeforeValidator(Expression.parse),
    WithJsonSchema({"type": ["string", "integer"], "examples": ["4 + C", 3]}),
]


def solve_shapes(
    shapes: Sequence[tuple[str, Sequence[Expression], Sequence[int]]],
    symbols: Mapping[str, Value],
) -> dict[str, Value]:
    """Find the symbols that make every written shape equal to its real one.

    Args:
        shapes: name of a tensor, its shape as written, its real shape.
        symbols: values known beforehand.

    Returns:
        `symbols` and the values found.

    Raises:
        ValueError: a rank or a size differs, or symbols stay unknown; both sides are named.
    """
    found = dict(symbols)
    for name, written, real in shapes:
        if len(written) != len(real):
            raise ValueError(
                f"{name}: expected {format_shape(written)}, {len(written)} axes,"
                f" found {list(real)}, {len(real)} axes"
            )
    open_dims = [
        (name, written, real, axis)
        for name, written, real in shapes
        for axis in range(len(written))
    ]
    while open_dims:
        left = [one for one in open_dims if not _settle(*one, found)]
        if len(left) == len(open_dims):
            name, written, real, axis = left[0]
            unknown = ", ".join(sorted(written[axis].names - found.keys()))
            raise ValueError(
                f"{name}: {format_shape(written)} against {list(real)} leaves {unknown} open"
            )
        open_dims = left
    return found


def _settle(
    name: str,
    written: Sequence[Expression],
    real: Sequence[int],
    axis: int,
    found: dict[str, Value],
) -> bool:
    """Check or solve one axis; False where it must wait for another."""
    dim, size = written[axis], real[axis]
    place = f"{name}: expected {format_shape(written)}, found {list(real)}"
    try:
        solved = dim.solve(size, found)
        if solved:
            found[solved[0]] = solved[1]
            return True
        if dim.names - found.keys():
            return False
        value = dim.evaluate(found)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    if value != size:
        known = ", ".join(f"{one} = {found[one]}" for one in sorted(dim.names))
        reason = f" ({dim}{known and ', '}{known})" if dim.names else ""
        raise ValueError(f"{place}: axis {axis} is {size}, not {value}{reason}")
    return True


def format_shape(written: Sequence[object]) -> str:
    """`[N, A, 5 + C]`."""
    return f"[{', '.join(map(str, written))}]"
