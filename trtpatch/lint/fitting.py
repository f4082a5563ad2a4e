"""Cases that cannot be bound to their contract."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.engines import Tensor
from trtpatch.errors import TrtpatchError
from trtpatch.lint.remarks import Remark
from trtpatch.match import model_sizes
from trtpatch.plan import PatchStep
from trtpatch.spec.ports import FRAMEWORK_SIZES, PORTS, model_size_hint
from trtpatch.spec.validate import choose
from trtpatch.verify.cases import Case, plan_case

_FRAME = frozenset(name for name, _ in PORTS["frame"].fields())


def fit_cases(
    patch: Patch, cases: Sequence[Case], used: Set[str]
) -> tuple[PatchStep | None, list[Remark]]:
    """Bind every case to the contract.

    Args:
        patch: whose.
        cases: all of them.
        used: names that kernel or reference reads from `args`.

    Returns:
        The step of the first case that fits, and what is wrong with the others; what several have
        in common once.
    """
    first = None
    found: dict[str, list[tuple[str, str]]] = {}
    for case in cases:
        wrong = list(_wrong(patch, case, used))
        if not wrong:
            try:
                step = next(plan_case(patch, case).patch_steps)
            except TrtpatchError as error:
                wrong = [_own(patch, case, str(error))]
            else:
                first = first or step
        for one in wrong:
            alike = re.sub(r"\d+", "#", one)
            found.setdefault(alike, []).append((case.name, one))
    return first, [_remark(patch, alike, len(cases)) for alike in found.values()]


def _remark(patch: Patch, alike: Sequence[tuple[str, str]], count: int) -> Remark:
    path = patch.folder / "cases.py"
    name, message = alike[0]
    who = f"case {name!r}"
    if len(alike) > 1:
        who += " and all others" if len(alike) == count else f" and {len(alike) - 1} more"
    lines = path.read_text(encoding="utf-8").splitlines()
    text = f'"{name}"'
    line = next((n for n, one in enumerate(lines, 1) if text in one), 0)
    column = lines[line - 1].index(text) + 1 if line else 0
    return Remark("case", "error", str(path), line, column, f"{who}: {message}")


def _own(patch: Patch, case: Case, message: str) -> str:
    """A message without the names that a remark has anyhow."""
    place = rf"({re.escape(patch.label)}|{re.escape(builtin.shown(patch.label))})(:\d+:\d+)?: "
    message = re.sub(f"^{place}", "", message)
    for prefix in (patch.name, f"case {case.name!r}"):
        message = message.removeprefix(f"{prefix}: ")
    return message


def _wrong(patch: Patch, case: Case, used: Set[str]) -> Iterator[str]:
    spec = patch.spec
    for name in case.params:
        if name not in spec.params:
            yield f"there is no parameter {name!r}.{choose(name, spec.params)}"
    fields = spec.fields(spec.inputs)
    for name in case.inputs:
        if name not in fields:
            yield f"there is no input {name!r}.{choose(name, fields)}"
    for name in fields:
        if name not in case.inputs and name not in _FRAME:
            yield f"input {name!r} is missing"
    if "frame" in spec.inputs and "frame_images" not in case.inputs:
        yield "input 'frame_images' is missing"
    shapes = {name: shape for name, shape in case.shapes.items() if name != "model"}
    for name in shapes:
        if name not in spec.outputs:
            yield f"there is no output {name!r}.{choose(name, [*spec.outputs, 'model'])}"
    known = model_sizes([Tensor(name, "", shape) for name, shape in shapes.items()])
    missing = sorted(FRAMEWORK_SIZES & {*used, *spec.sizing()} - known.keys())
    if missing and "model" not in case.shapes:
        yield model_size_hint(missing[0])
