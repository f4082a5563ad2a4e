"""Shapes that a user or a caller gives, held against what an engine takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from trtpatch.engines import InputShape, Shape, Tensor
from trtpatch.errors import EngineError

Bounds = tuple[Shape, Shape, Shape]
"""Smallest, best and largest shape of an input, as an optimisation profile has them."""


def named_shapes(path: str, given: InputShape, inputs: Iterable[Tensor]) -> dict[str, Shape]:
    """Shapes by input name.

    Args:
        path: the engine's file, for messages.
        given: by name already, or one shape for the only input with as many axes.
        inputs: what the engine takes.

    Raises:
        EngineError: a name is unknown, it is not clear which input is meant, the number of axes
            is another, or a size is below 1.
    """
    known = {tensor.name: tensor for tensor in inputs}
    if given is None:
        return {}
    if isinstance(given, Mapping):
        shapes = {name: tuple(shape) for name, shape in given.items()}
        for name in shapes:
            if name not in known:
                raise EngineError(f"{path}: {_unknown(name, known)}")
    else:
        fitting = [name for name, tensor in known.items() if len(tensor.shape) == len(given)]
        if len(fitting) != 1:
            raise EngineError(
                f"{path}: input_shape {list(given)} has {len(given)} axes, which "
                f"{'none' if not fitting else 'more than one'} of its inputs has: "
                f"{_listed(known.values())}"
            )
        shapes = {fitting[0]: tuple(given)}
    for name, shape in shapes.items():
        if len(shape) != len(known[name].shape) or min(shape, default=1) < 1:
            raise EngineError(
                f"{path}: input_shape {list(shape)} for input {known[name]}: expected "
                f"{len(known[name].shape)} sizes of 1 or more"
            )
    return shapes


def check_shapes(
    path: str,
    given: Mapping[str, Shape],
    inputs: Iterable[Tensor],
    *,
    bounds: Mapping[str, Bounds] | None = None,
) -> None:
    """Check the shapes of a run: every input there, axes and fixed sizes right, within bounds.

    Args:
        path: the engine's file, for messages.
        given: by input name.
        inputs: what the engine takes; -1 where it leaves a size open.
        bounds: of the inputs with open sizes, where the engine has any.

    Raises:
        EngineError: something does not fit; the message has both sides.
    """
    known = {tensor.name: tensor for tensor in inputs}
    for name in given:
        if name not in known:
            raise EngineError(f"{path}: {_unknown(name, known)}")
    for name, tensor in known.items():
        if name not in given:
            raise EngineError(f"{path}: no shape is given for input {tensor}")
        shape = tuple(given[name])
        fits = len(shape) == len(tensor.shape) and all(
            want in (-1, size) and size >= 1 for want, size in zip(tensor.shape, shape, strict=True)
        )
        if not fits:
            raise EngineError(
                f"{path}: input {name!r} takes {list(tensor.shape)}, found {list(shape)}"
            )
        if bounds and name in bounds:
            low, best, high = bounds[name]
            if not all(a <= size <= b for a, size, b in zip(low, shape, high, strict=True)):
                raise EngineError(
                    f"{path}: input {name!r} of shape {list(shape)} is outside what the plan was "
                    f"built for: min {list(low)}, opt {list(best)}, max {list(high)}. "
                    "Use a shape within, or build it again with other bounds"
                )


def _unknown(name: str, known: Mapping[str, Tensor]) -> str:
    near = get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"no input is called {name!r}; it has {_listed(known.values())}.{hint}"


def _listed(tensors: Iterable[Tensor]) -> str:
    return ", ".join(map(str, tensors)) or "no inputs"
