"""What a patch's cases never try: values of parameters, element types, layouts of frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trtpatch.catalog import Patch
from trtpatch.lint.contract import remark
from trtpatch.lint.remarks import Remark
from trtpatch.spec.patch import ParamSpec, TensorSpec
from trtpatch.verify.cases import Case, as_group


def lint_cases(patch: Patch, cases: Sequence[Case]) -> Iterator[Remark]:
    """Branches of the parameters' ranges that no case takes."""
    sizing = patch.spec.sizing()
    for name, spec in patch.spec.params.items():
        values = [case.params.get(name, spec.default) for case in cases]
        missing = list(_missing(spec, values, sizing=name in sizing))
        if missing:
            message = f"no case has {name} at {' or '.join(missing)}"
            yield remark(patch, ("params", name), "untried", message, "warning")
    for name, tensor in {**patch.spec.inputs, **patch.spec.outputs}.items():
        if not isinstance(tensor, TensorSpec):
            continue
        given = {_dtype(case, name) for case in cases} | {tensor.dtype[0]}
        if name in patch.spec.outputs and not any(name in case.shapes for case in cases):
            continue
        left = [dtype for dtype in tensor.dtype if dtype not in given]
        if left:
            side = "inputs" if name in patch.spec.inputs else "outputs"
            message = f"no case has {name} as {' or '.join(left)}"
            yield remark(patch, (side, name), "untried", message, "warning")
    if "frame" in patch.spec.inputs:
        tried = {case.frame for case in cases}
        untried = [layout for layout in patch.spec.frames if layout not in tried]
        if untried:
            message = f"no case has frames in {' or '.join(untried)}"
            yield remark(patch, ("frames",), "untried", message, "warning")


def _missing(spec: ParamSpec, values: Sequence[object], *, sizing: bool) -> Iterator[str]:
    if spec.type == "choice":
        yield from (choice for choice in spec.choices if choice not in values)
    elif spec.type == "bool":
        yield from (str(one).lower() for one in (True, False) if one not in values)
    elif spec.type in ("float", "int"):
        most = None if sizing else spec.max  # the largest there can be is too large for a case
        ends = [end for end in (spec.min, most) if end is not None]
        yield from (str(end) for end in ends if end not in values)
        if not ends and not any(value != spec.default for value in values):
            yield "another value than its default"
    elif not any(_listed(value) != _listed(spec.default) for value in values):
        yield "another value than its default"


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _dtype(case: Case, name: str) -> str:
    given = case.inputs.get(name)
    return case.dtypes.get(name, "") if given is None else as_group(given)[0].dtype.name
