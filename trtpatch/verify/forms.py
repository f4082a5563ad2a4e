"""The form of a case: all of it that is compiled in, sizes, element types and baked parameters.

New forms come from those of a patch's own cases, by small changes that its contract allows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.errors import TrtpatchError
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import FRAMEWORK_SIZES, ParamSpec, TensorSpec
from trtpatch.spec.ports import PORTS, FrameLayout
from trtpatch.verify.cases import Case, as_group, plan_case

Draw = Callable[[Any], Any]
"""Takes a strategy of hypothesis and gives a value of it."""

MAX_ELEMENTS = 200_000
"""Of all inputs of a made-up case together."""

_BATCHES = (1, 2, 3, 7)
_SIZES = (33, 1, 2, 31, 40)


@dataclass(frozen=True)
class Form:
    """What is compiled in.

    Attributes:
        base: the case that it was made from.
        sizes: value of each symbol that inputs decide; a tuple where levels differ.
        dtypes: element type of each of the engine's tensors.
        params: values that differ from the contract's defaults.
        frame: how the bytes of the frames lie.
        changes: from the base, in words.
    """

    base: Case
    sizes: Mapping[str, Value]
    dtypes: Mapping[str, str]
    params: Mapping[str, Any]
    frame: FrameLayout = "rgb"
    changes: tuple[str, ...] = ()

    def shapes(self, patch: Patch, spec: TensorSpec) -> list[tuple[int, ...]]:
        """Shape of a tensor, level after level if it is a group.

        Raises:
            ValueError: a symbol has no value, or several.
        """
        levels = self.sizes[spec.levels[0]] if spec.levels else (0,)
        if not isinstance(levels, tuple):
            raise ValueError(f"{spec.levels[0]} is the same in all levels")
        found = []
        for number in range(len(levels)):
            known = _known(patch, self.sizes, self.params)
            for name in spec.levels:
                known[name] = self.sizes[name][number]  # type: ignore[index]
            shape = [dim.evaluate(known) for dim in spec.shape]
            if not all(isinstance(size, int) and size > 0 for size in shape):
                raise ValueError(f"{shape} is no shape")
            found.append(tuple(shape))
        return found  # type: ignore[return-value]

    def case(self, patch: Patch, inputs: Mapping[str, Any]) -> Case:
        """A case of this form with the given inputs."""
        outputs = {
            name: self.shapes(patch, spec)[0]
            for name, spec in patch.spec.outputs.items()
            if isinstance(spec, TensorSpec) and name in self.base.shapes
        }
        if "model" in self.base.shapes:
            outputs["model"] = self.sizes["model_H"], self.sizes["model_W"]  # type: ignore[assignment]
        dtypes = {name: self.dtypes[name] for name in outputs if name in self.dtypes}
        return Case("", inputs, self.params, outputs, dtypes, self.frame)

    def blank(self, patch: Patch) -> Case:
        """A case of this form in which all is zero.

        Raises:
            ValueError: the sizes do not make shapes.
        """
        inputs: dict[str, Any] = {}
        for name, spec in patch.spec.inputs.items():
            if name == "frame":
                inputs["frame_images"] = [np.zeros((0, 0, 3), np.uint8)] * self.batch
            elif isinstance(spec, TensorSpec):
                arrays = [np.zeros(shape, self.dtypes[name]) for shape in self.shapes(patch, spec)]
                inputs[name] = arrays if spec.levels else arrays[0]
            else:
                inputs |= {
                    field: np.zeros(self.port_shape(tensor.shape), tensor.dtype)
                    for field, tensor in PORTS[name].fields()
                }
        return self.case(patch, inputs)

    def port_shape(self, axes: Sequence[str | int]) -> tuple[int, ...]:
        """Shape of a tensor of a port."""
        return tuple(self.sizes[a] if isinstance(a, str) else a for a in axes)  # type: ignore[misc]

    @property
    def batch(self) -> int:
        """Images."""
        return self.sizes["N"]  # type: ignore[return-value]

    @property
    def elements(self) -> int:
        """About how much there is to do; the smallest forms come first."""
        values = [v if isinstance(v, tuple) else (v,) for v in self.sizes.values()]
        return sum(map(sum, values))


def form_of(patch: Patch, case: Case) -> Form:
    """The form of a case.

    Raises:
        TrtpatchError: it does not fit the contract.
    """
    (step,) = plan_case(patch, case).patch_steps
    free = set(_free_symbols(patch, case))
    dtypes = {}
    for name, spec in {**patch.spec.inputs, **patch.spec.outputs}.items():
        if isinstance(spec, TensorSpec):
            given = case.inputs.get(name)
            there = case.dtypes.get(name, spec.dtype[0])
            dtypes[name] = there if given is None else as_group(given)[0].dtype.name
    sizes = {name: size for name, size in step.sizes.items() if name in free}
    return Form(case, sizes, dtypes, case.params, case.frame)


def _free_symbols(patch: Patch, case: Case) -> Iterator[str]:
    spec = patch.spec
    derived = {*spec.sizes, *spec.params}
    yield from ("N", *FRAMEWORK_SIZES)
    for name, tensor in {**spec.inputs, **spec.outputs}.items():
        if isinstance(tensor, TensorSpec):
            if name in spec.inputs or name in case.shapes:
                yield from (s for dim in tensor.shape for s in dim.names if s not in derived)
        elif name in spec.inputs:
            for one in PORTS[name].tensors:
                yield from (axis for axis in one.shape if isinstance(axis, str) and not one.ragged)


def draw_form(draw: Draw, patch: Patch, forms: Sequence[Form]) -> Form | None:
    """A form like one of the given ones; None where what was drawn does not fit the contract."""
    from hypothesis import strategies as st

    base: Form = draw(st.sampled_from(forms))
    sizes, params = dict(base.sizes), dict(base.params)
    _change_sizes(draw, patch, sizes, params)
    for name in baked(patch):
        if draw(st.booleans()):
            spec = patch.spec.params[name]
            params[name] = draw_value(draw, spec, [f.params.get(name, spec.default) for f in forms])
    frame: FrameLayout = base.frame
    if "frame" in patch.spec.inputs:
        frame = draw(st.sampled_from(patch.spec.frames))
    dtypes = {
        name: draw(st.sampled_from(spec.dtype))
        for name, spec in {**patch.spec.inputs, **patch.spec.outputs}.items()
        if isinstance(spec, TensorSpec)
    }
    try:
        for name, definition in _definitions(patch):
            if name in sizes:
                sizes[name] = definition.evaluate(_known(patch, sizes, params))
        form = replace(base, sizes=sizes, dtypes=dtypes, params=params, frame=frame)
        case = form.blank(patch)
        plan_case(patch, case)
    except (ValueError, KeyError, TrtpatchError):
        return None
    arrays = [array for given in case.inputs.values() for array in as_group(given)]
    if sizes == base.sizes or sum(array.size for array in arrays) > MAX_ELEMENTS:
        return None
    return replace(form, changes=tuple(_changes(base, form)))


def _change_sizes(
    draw: Draw, patch: Patch, sizes: dict[str, Value], params: dict[str, Any]
) -> None:
    """Change one size, or some by one factor, or leave levels out."""
    from hypothesis import strategies as st

    names = sorted(sizes.keys() - {"N"})
    change = draw(st.sampled_from(["one size", "images", "scale", "fewer levels"]))
    if change == "images":
        sizes["N"] = draw(st.sampled_from(_BATCHES))
    elif change == "fewer levels":
        _drop_levels(draw, patch, sizes, params)
    elif change == "one size" and names:
        name = draw(st.sampled_from(names))
        size = sizes[name]
        if isinstance(size, int):
            sizes[name] = draw(st.sampled_from([size + 1, max(1, size - 1), *_SIZES]))
    elif change == "scale" and names:
        factor = draw(st.integers(2, 3))
        for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)):
            size = sizes[name]
            scaled = tuple(factor * s for s in size) if isinstance(size, tuple) else factor * size
            sizes[name] = scaled


def baked(patch: Patch) -> list[str]:
    """Parameters that are compiled in, or on which a size depends."""
    spec = patch.spec
    sizing = {name for dim in (*spec.sizes.values(), *spec.where) for name in dim.names}
    return [name for name, param in spec.params.items() if not param.runtime or name in sizing]


def draw_value(draw: Draw, spec: ParamSpec, known: Sequence[Any]) -> Any:
    """A value of a parameter: of its whole range where that has ends, else near known values."""
    from hypothesis import strategies as st

    if spec.type == "bool":
        return draw(st.booleans())
    if spec.type == "choice":
        return draw(st.sampled_from(spec.choices))
    usual = st.sampled_from(list(_allowed(spec, [spec.default, *known])))
    if spec.type in ("[float]", "[int]"):
        values = draw(usual)
        if spec.length is None:
            return values[: draw(st.integers(1, len(values)))] if values else values
        return values
    low, high = spec.min, spec.max
    if spec.type == "int":
        options = [usual]
        if low is not None:
            options.append(st.integers(int(low), int(low + 16 if high is None else high)))
        return draw(st.one_of(options))
    if low is not None and high is not None:
        return draw(st.one_of(usual, st.floats(low, high, width=32)))
    return draw(usual)


def _allowed(spec: ParamSpec, values: Sequence[Any]) -> Iterator[Any]:
    """Those of the values that the contract allows, each once."""
    for value in dict.fromkeys(map(_frozen, values)):
        try:
            yield spec.check(value)
        except ValueError:
            continue


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _drop_levels(draw: Draw, patch: Patch, sizes: dict[str, Value], params: dict[str, Any]) -> None:
    """Keep the first levels, and of lists that go with the levels what belongs to these."""
    from hypothesis import strategies as st

    levels = max((len(size) for size in sizes.values() if isinstance(size, tuple)), default=1)
    kept = draw(st.integers(1, levels))
    for name, size in sizes.items():
        sizes[name] = size[:kept] if isinstance(size, tuple) else size
    for name, spec in patch.spec.params.items():
        value = params.get(name, spec.default)
        if isinstance(value, (list, tuple)) and len(value) % levels == 0 and not spec.length:
            params[name] = tuple(value[: len(value) * kept // levels])


def _definitions(patch: Patch) -> Iterator[tuple[str, Expression]]:
    """Conditions of the form `A == ...`, which say what a symbol must be."""
    for condition in patch.spec.where:
        tree = ast.parse(condition.text, mode="eval").body
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.Eq):
            for one, other in ((tree.left, tree.comparators[0]), (tree.comparators[0], tree.left)):
                if isinstance(one, ast.Name):
                    yield one.id, Expression.parse(ast.unparse(other))


def _known(patch: Patch, sizes: Mapping[str, Value], params: Mapping[str, Any]) -> dict[str, Value]:
    """All that an expression of the contract may use, as far as it is known."""
    known: dict[str, Any] = dict(sizes)
    for name, spec in patch.spec.params.items():
        value = _frozen(params.get(name, spec.default))
        if isinstance(value, tuple):
            known[f"{name}_count"] = len(value)
        if spec.type in ("int", "[int]"):
            known[name] = value
    for name, tensor in patch.spec.inputs.items():
        if isinstance(tensor, TensorSpec) and tensor.levels:
            known[f"{name}_count"] = len(sizes[tensor.levels[0]])  # type: ignore[arg-type]
    for name, size in patch.spec.sizes.items():
        try:
            known[name] = size.evaluate(known)
        except ValueError:
            continue
    return known


def _changes(base: Form, form: Form) -> Iterator[str]:
    for name, size in form.sizes.items():
        if size != base.sizes[name]:
            yield f"{name} = {size}"
    for name, value in form.params.items():
        if _frozen(value) != _frozen(base.params.get(name)):
            yield f"{name} = {value}"
    if form.frame != base.frame:
        yield f"frames in {form.frame}"
    for name, dtype in form.dtypes.items():
        if dtype != base.dtypes[name]:
            yield f"{name} as {dtype}"
