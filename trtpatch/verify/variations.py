"""New forms of cases, drawn by hypothesis: small changes of known ones that a contract allows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trtpatch.catalog import Patch
from trtpatch.errors import TrtpatchError
from trtpatch.spec.expressions import Expression, Value
from trtpatch.spec.patch import ParamSpec, TensorSpec
from trtpatch.spec.ports import FrameLayout
from trtpatch.verify.cases import as_group, plan_case
from trtpatch.verify.forms import Form, frozen, known_names

Draw = Callable[[Any], Any]
"""Takes a strategy of hypothesis and gives a value of it."""

MAX_ELEMENTS = 200_000
"""Of all inputs of a made-up case together."""

_BATCHES = (1, 2, 3, 7)
_SIZES = (33, 1, 2, 31, 40)


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
                sizes[name] = definition.evaluate(known_names(patch, sizes, params))
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
    for value in dict.fromkeys(map(frozen, values)):
        try:
            yield spec.check(value)
        except ValueError:
            continue


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


def _changes(base: Form, form: Form) -> Iterator[str]:
    for name, size in form.sizes.items():
        if size != base.sizes[name]:
            yield f"{name} = {size}"
    for name, value in form.params.items():
        if frozen(value) != frozen(base.params.get(name)):
            yield f"{name} = {value}"
    if form.frame != base.frame:
        yield f"frames in {form.frame}"
    for name, dtype in form.dtypes.items():
        if dtype != base.dtypes[name]:
            yield f"{name} as {dtype}"
