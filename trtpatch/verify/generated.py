"""Cases that nobody thought of, made from a patch's own ones by hypothesis.

A made-up case starts from one of `cases.py`, which is known to fit the contract, and differs from
it in its form, its contents, its runtime parameters, or in where its tensors begin. Few forms with
many contents each keep the compiler's work small.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from trtpatch.catalog import Patch
from trtpatch.extras import install
from trtpatch.spec.patch import TensorSpec
from trtpatch.spec.ports import PORTS
from trtpatch.unit import make_unit
from trtpatch.verify.cases import Case, as_group, engine_tensors, plan_case
from trtpatch.verify.contents import (
    HARD,
    SPECIAL,
    STYLES,
    engine_tensor,
    frames,
    keep_in_frame,
    port,
)
from trtpatch.verify.forms import Form, form_of
from trtpatch.verify.variations import MAX_ELEMENTS, Draw, baked, draw_form, draw_value

_PREFIX = "generated"
_MISSING = f"hypothesis, which makes up cases, is not installed: {install('verify')}"
_CASES_A_FORM = 4
_SHRINK_S = 40.0


def is_generated(case: Case) -> bool:
    """Whether a case was made up here."""
    return case.name.startswith(_PREFIX)


def generate(patch: Patch, own: Sequence[Case], *, count: int, seed: int) -> list[Case]:
    """Make up cases; the first of each form has numbers in it that no integer holds.

    Args:
        patch: whose contract they fit.
        own: the patch's own cases, which are the start.
        count: how many.
        seed: the same seed gives the same cases.

    Raises:
        ImportError: hypothesis is not installed.
    """
    made: list[Case] = []
    forms = _forms(patch, own, count=count, seed=seed)
    for index, form in enumerate(forms):
        before, enough = (count * one // len(forms) for one in (index, index + 1))

        def add_case(
            draw: Draw, form: Form = form, before: int = before, enough: int = enough
        ) -> bool:
            hard = HARD if len(made) == before else ()
            case = _draw_case(draw, patch, form, len(made) + 1, special=hard)
            if len(made) < enough and not _is_known(case, made):
                made.append(case)
            return len(made) == enough

        _explore(add_case, examples=4 * count, seed=_seed(patch, seed, index))
    return made


def smallest(
    patch: Patch,
    own: Sequence[Case],
    fails: Callable[[Case], bool],
    *,
    count: int,
    seed: int,
) -> Case | None:
    """The smallest failing case that hypothesis finds in a while, of the forms in `generate`.

    Args:
        patch, own, count, seed: as they were for `generate`.
        fails: runs a case.

    Returns:
        None if none fails.
    """
    deadline = time.monotonic() + _SHRINK_S
    failing: list[Case] = []
    forms = _forms(patch, own, count=count, seed=seed)
    for index, form in enumerate(forms):

        def run_case(draw: Draw, form: Form = form) -> bool:
            case = _draw_case(draw, patch, form, 0)
            if time.monotonic() > deadline or not fails(case):
                return False
            failing.append(case)
            return True

        examples = max(1, count // len(forms))
        _explore(run_case, examples=examples, seed=_seed(patch, seed, index), shrink=True)
        if failing:
            break
    return failing[-1] if failing else None


class _FoundError(Exception):
    """What was looked for; hypothesis takes it for a failure, and makes it smaller."""


def _explore(
    look: Callable[[Draw], bool], *, examples: int, seed: int, shrink: bool = False
) -> None:
    """Let hypothesis draw until `look` has found what it looks for, then make that smaller."""
    try:
        import hypothesis
        from hypothesis import strategies as st
    except ImportError:
        raise ImportError(_MISSING) from None

    phases = [hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if shrink else [])]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        phases=phases,
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def explore(data: Any) -> None:
        if look(data.draw):
            raise _FoundError

    with suppress(_FoundError, hypothesis.errors.Flaky):
        explore()


def _forms(patch: Patch, own: Sequence[Case], *, count: int, seed: int) -> list[Form]:
    """Forms to make cases of, half of them new, the others the patch's own; the smallest first."""
    bases: dict[str, Form] = {}
    for case in own:
        arrays = [array for given in case.inputs.values() for array in as_group(given)]
        if sum(array.size for array in arrays) <= MAX_ELEMENTS:
            form = form_of(patch, case)
            bases.setdefault(_key(patch, form), form)
    new: dict[str, Form] = {}
    half = max(1, count // (2 * _CASES_A_FORM))

    def add_form(draw: Draw) -> bool:
        form = draw_form(draw, patch, list(bases.values()))
        if form is not None and len(new) < half and (key := _key(patch, form)) not in bases:
            new[key] = form
        return len(new) == half

    if bases:
        _explore(add_form, examples=400, seed=_seed(patch, seed, 0))
    random = np.random.default_rng(_seed(patch, seed, 0))
    kept = random.permutation(len(bases))[:half]
    forms = [*new.values(), *(list(bases.values())[index] for index in kept)]
    return sorted(forms, key=lambda form: form.elements)


def _is_known(case: Case, made: Sequence[Case]) -> bool:
    """Whether a case is one that was made before, or says so and differs in random numbers alone.

    Contents of ports are all random numbers.
    """
    told = case.name.partition(":")[2]
    from_ports = case.inputs.keys() & {n for port in PORTS.values() for n, _ in port.fields()}
    return not from_ports and any(told == other.name.partition(":")[2] for other in made)


def _seed(patch: Patch, seed: int, index: int) -> int:
    return zlib.crc32(f"{patch.name} {seed} {index}".encode())


def _key(patch: Patch, form: Form) -> str:
    """What decides whether two forms are one to a compiler."""
    (step,) = plan_case(patch, form.blank(patch)).patch_steps
    return make_unit(step).text


def _draw_case(
    draw: Draw, patch: Patch, form: Form, number: int, *, special: Sequence[float] = ()
) -> Case:
    """A case of a form; with special numbers that are drawn too, where they are not given."""
    from hypothesis import strategies as st

    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    style = draw(st.sampled_from(list(STYLES)))
    special = special or draw(st.lists(st.sampled_from(SPECIAL), max_size=3))
    tensors = engine_tensors(patch)
    shifts = {name: draw(st.integers(0, 3)) for name in tensors}
    offsets = {name: shift for name, shift in shifts.items() if shift}
    params = dict(form.params)
    for name in sorted(patch.spec.params.keys() - baked(patch)):
        if draw(st.booleans()):
            spec = patch.spec.params[name]
            params[name] = draw_value(draw, spec, [params.get(name, spec.default), 0, -1, 1, 0.5])
    told = [f"from {form.base.name!r}", *form.changes]
    told += [style, *map(repr, special)] if any(t in form.base.inputs for t in tensors) else []
    told += [f"{n} = {v:g}" for n, v in params.items() if n not in form.params]
    told += [f"{name} + {shift}" for name, shift in offsets.items()]
    inputs = _inputs(random, patch, form, style, special)
    case = form.case(patch, inputs)
    name = f"{_PREFIX} {number}: {', '.join(told)}"
    made: Case = replace(case, name=name, params=params, offsets=offsets)
    return made


def _inputs(
    random: np.random.Generator, patch: Patch, form: Form, style: str, special: Sequence[float]
) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, spec in patch.spec.inputs.items():
        if name == "frame":
            inputs["frame_images"] = frames(random, form.batch, form.frame)
        elif isinstance(spec, TensorSpec):
            given, shapes = as_group(form.base.inputs[name]), form.shapes(patch, spec)
            arrays = [
                engine_tensor(
                    random,
                    given[level % len(given)],
                    shape,
                    form.dtypes[name],
                    style=style,
                    special=special,
                )
                for level, shape in enumerate(shapes)
            ]
            inputs[name] = arrays if spec.levels else arrays[0]
        else:
            inputs |= port(random, name, anchors=_anchors(patch, form), sizes=form.sizes)
    keep_in_frame(inputs)
    return inputs


def _anchors(patch: Patch, form: Form) -> int:
    """How many anchors there are: A, or the cells of all levels."""
    (step,) = plan_case(patch, form.blank(patch)).patch_steps
    found = step.sizes.get("A", step.sizes.get("P", 1))
    return sum(found) if isinstance(found, tuple) else found
