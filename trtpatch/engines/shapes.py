"""Shapes that a user or a caller gives, held against what an engine takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from trtpatch.engines import Bounds, EngineInfo, InputShape, Profile, Shape, Tensor
from trtpatch.errors import EngineError

_OPEN = -1


def named_shapes(path: str, given: InputShape, inputs: Iterable[Tensor]) -> dict[str, Shape]:
    """Shapes by input name.

    Args:
        path: the engine's file, for messages.
        given: by name already, or one shape for the only input with as many axes; -1 leaves a
            size open.
        inputs: what the engine takes.

    Raises:
        EngineError: a name is unknown, it is not clear which input is meant, the number of axes
            is another, or a size is neither -1 nor above 0.
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
        wrong = any(size < 1 and size != _OPEN for size in shape)
        if wrong or len(shape) != len(known[name].shape):
            raise EngineError(
                f"{path}: input_shape {list(shape)} for input {known[name]}: expected "
                f"{len(known[name].shape)} sizes of 1 or more, or -1 to leave one open"
            )
    return shapes


def bounds_of(
    path: str, inputs: Iterable[Tensor], *, profile: Profile = None, batch: int | None = None
) -> dict[str, Bounds]:
    """Bounds of the inputs with open sizes, as far as they follow from what the user says.

    Args:
        path: the engine's file, for messages.
        inputs: what the engine takes; -1 where it leaves a size open.
        profile: bounds by input name, or those of the only input with as many axes.
        batch: the most that goes along a first axis, and the best, where no profile tells.

    Returns:
        By name. An input of which more than the first axis is open is only there if the profile
        has it.

    Raises:
        EngineError: the profile is for no such input, or no optimisation profile.
    """
    inputs = tuple(inputs)
    known = {tensor.name: tensor for tensor in inputs}
    if profile is None or isinstance(profile, Mapping):
        given = dict(profile or {})
    else:
        (name,) = named_shapes(path, profile[0], inputs)
        given = {name: profile}
    for name, bounds in given.items():
        if name not in known:
            raise EngineError(f"{path}: {_unknown(name, known)}")
        _check_bounds(path, known[name], bounds)
    batches = next(
        (tuple(b[0] for b in bounds) for n, bounds in given.items() if known[n].shape[0] == _OPEN),
        None if batch is None else (1, batch, batch),
    )
    for tensor in inputs:
        only_batch = tensor.shape[:1] == (_OPEN,) and _OPEN not in tensor.shape[1:]
        if tensor.name not in given and only_batch and batches:
            low, best, high = ((n, *tensor.shape[1:]) for n in batches)
            given[tensor.name] = (low, best, high)
    return given


def _check_bounds(path: str, tensor: Tensor, bounds: Bounds) -> None:
    low, best, high = (tuple(shape) for shape in bounds)
    told = (
        f"{path}: profile for input {tensor}: min {list(low)}, opt {list(best)}, max {list(high)}"
    )
    if {len(low), len(best), len(high)} != {len(tensor.shape)}:
        raise EngineError(f"{told}: expected {len(tensor.shape)} sizes each")
    for declared, *sizes in zip(tensor.shape, low, best, high, strict=True):
        if sizes != sorted(sizes) or sizes[0] < 1:
            raise EngineError(f"{told}: expected sizes of 1 or more that grow from min to max")
        if declared != _OPEN and sizes != [declared] * 3:
            opened = [a if a == c else _OPEN for a, c in zip(low, high, strict=True)]
            raise EngineError(
                f"{told}: the file fixes a size that the profile varies. "
                f"'input_shape: {opened}' opens it, where the network can do that"
            )


def with_shapes(inputs: Iterable[Tensor], shapes: Mapping[str, Shape]) -> tuple[Tensor, ...]:
    """Inputs with the given shapes; those that are not named keep theirs."""
    return tuple(replace(t, shape=tuple(shapes.get(t.name, t.shape))) for t in inputs)


def narrowed(
    path: str, given: InputShape, inputs: Iterable[Tensor], bounds: Mapping[str, Bounds]
) -> tuple[Tensor, ...]:
    """A plan's inputs with those sizes fixed that the user gives; see `named_shapes`.

    Raises:
        EngineError: the plan has other sizes, or bounds that exclude these.
    """
    inputs = tuple(inputs)
    shapes = named_shapes(path, given, inputs)
    found = []
    for tensor in inputs:
        asked = shapes.get(tensor.name, tensor.shape)
        shape = tuple(
            own if size == _OPEN else size for own, size in zip(tensor.shape, asked, strict=True)
        )
        best = bounds[tensor.name][1] if tensor.name in bounds else shape
        whole = tuple(b if size == _OPEN else size for size, b in zip(shape, best, strict=True))
        check_shapes(path, {tensor.name: whole}, [tensor], bounds=bounds)
        found.append(replace(tensor, shape=shape))
    return tuple(found)


def ready_info(
    info: EngineInfo, shapes: Mapping[str, Shape], outputs: Iterable[Tensor]
) -> EngineInfo:
    """What an engine is once its shapes are given."""
    inputs = with_shapes(info.inputs, shapes)
    return replace(info, inputs=inputs, outputs=tuple(outputs), bounds={})


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
            want in (_OPEN, size) and size >= 1
            for want, size in zip(tensor.shape, shape, strict=True)
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
