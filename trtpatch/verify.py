"""A patch's kernels against its reference, case by case."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

from trtpatch import executors
from trtpatch.catalog import Patch
from trtpatch.engines import Tensor as EngineTensor
from trtpatch.errors import VerifyError
from trtpatch.frame import Frame, as_frames
from trtpatch.plan import PatchStep, Plan
from trtpatch.planner import plan_patches
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.ports import PORTS, FrameLayout

Array = np.ndarray[Any, Any]
Given = Union[Array, Sequence[Array]]

POISON = 0xCD
"""Every byte of an output and of scratch before a patch runs."""


@dataclass(frozen=True)
class Case:
    """Inputs that matter to a patch.

    Attributes:
        name: what the case is about.
        inputs: by field, such as `head`, `candidates_boxes` or `frame_images`; a group, and the
            pictures of `frame_images`, as a list.
        params: parameters that differ from the defaults.
        shapes: of outputs that the inputs do not decide, and `model` for the height and width in
            pixels of the model's picture.
        dtypes: element type of such outputs, where it is not the contract's first.
        frame: how the bytes of the frames lie.
    """

    name: str
    inputs: Mapping[str, Given]
    params: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    frame: FrameLayout = "rgb"


@dataclass(frozen=True)
class Difference:
    """One output of one case, compared with the reference.

    Attributes:
        largest: the largest absolute difference; NaN where the shapes of NaN differ.
        wrong: how many elements are beyond the tolerance.
        size: how many elements were compared.
    """

    field: str
    largest: float
    wrong: int
    size: int


@dataclass(frozen=True)
class Outcome:
    """One case on one executor."""

    patch: str
    case: str
    executor: str
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Whether every output is within the contract's tolerance."""
        return not any(one.wrong for one in self.differences)


def load_cases(patch: Patch) -> list[Case]:
    """The cases of a patch's `cases.py`.

    Raises:
        VerifyError: there is no `cases.py`, or it does not run.
    """
    path = patch.folder / "cases.py"
    if not path.is_file():
        raise VerifyError(f"{path}: {patch.name} has no cases")
    spec = importlib.util.spec_from_file_location(f"trtpatch_cases_{patch.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return list(module.cases())
    except Exception as error:
        raise VerifyError(f"{path}: {type(error).__name__}: {error}") from error


def plan_case(patch: Patch, case: Case) -> Plan:
    """Bind a patch to a case's inputs.

    Raises:
        VerifyError: the case's parameters are wrong.
        MatchError: the contract does not fit the case's inputs.
    """
    params: dict[str, ParamValue] = {}
    for name, value in case.params.items():
        if name not in patch.spec.params:
            raise VerifyError(f"{patch.name}: case {case.name!r} sets no parameter {name!r}")
        try:
            params[name] = patch.spec.params[name].check(value)
        except ValueError as error:
            raise VerifyError(f"{patch.name}: case {case.name!r}: {name}: {error}") from None
    given = {name: _group(value) for name, value in case.inputs.items() if name not in _FRAME}
    outputs = {
        name: EngineTensor(name, case.dtypes.get(name, _first_dtype(patch, name)), shape)
        for name, shape in case.shapes.items()
        if name != "model"
    }
    images = case.inputs.get("frame_images")
    first = next(iter(case.inputs.values()))
    batch = len(images) if images is not None else len(_group(first)[0])
    return plan_patches(
        [patch],
        inputs={
            name: tuple(EngineTensor(name, array.dtype.name, array.shape) for array in arrays)
            for name, arrays in given.items()
        },
        outputs=outputs,
        params={patch.name: params},
        batch=batch,
        model_size=case.shapes.get("model"),  # type: ignore[arg-type]
        frame_layout=case.frame,
    )


_FRAME = frozenset(name for name, _ in PORTS["frame"].fields())


def run_case(plan: Plan, case: Case, executor: str, *, device: int = 0) -> dict[str, Array]:
    """Run one planned case.

    Returns:
        The patch's outputs, by field. Outputs and scratch are poisoned beforehand.
    """
    walker = executors.make_executor(executor, plan, None, device=device)
    step = next(plan.patch_steps)
    try:
        for tensor in step.tensors:
            if tensor.name in case.inputs and not tensor.ragged:
                arrays = _group(case.inputs[tensor.name])
                for buffer, array in zip(tensor.buffers, arrays, strict=True):
                    walker.write(buffer, array)
            elif tensor.written:
                poison(walker, plan, tensor.buffers[0])
        images = case.inputs.get("frame_images", ())
        walker.put_frames([frame_of(one, case.frame) for one in images])
        walker.walk()
        return {name: walker.read(buffer) for name, buffer in _outputs(step)}
    finally:
        walker.close()


def poison(walker: executors.Executor, plan: Plan, buffer: str) -> None:
    """Fill a buffer with bytes that no kernel writes by chance."""
    b = plan.buffers[buffer]
    walker.write(buffer, np.full(b.nbytes, POISON, np.uint8).view(b.dtype).reshape(b.shape))


def verify(patch: Patch, executor: str, *, device: int = 0) -> Iterator[Outcome]:
    """Compare every case of a patch on an executor with the reference.

    Raises:
        VerifyError: the patch has no reference or no cases.
    """
    for case in load_cases(patch):
        plan = plan_case(patch, case)
        expected = run_case(plan, case, "cpu")
        found = run_case(plan, case, executor, device=device)
        yield Outcome(patch.name, case.name, executor, compare(patch, found, expected))


def compare(
    patch: Patch, found: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[Difference, ...]:
    """Differences of all outputs, with what has no order brought into one."""
    found, expected = in_order(found), in_order(expected)
    return tuple(
        _difference(name, found[name], expected[name], patch.spec.tolerance.get(name, "exact"))
        for name in expected
    )


def in_order(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Candidates sorted by anchor, and what is past a row's use blanked: it means nothing."""
    ordered = dict(outputs)
    for port in PORTS.values():
        for name, tensor in port.fields():
            if tensor.used and name in outputs:
                used = outputs[f"{port.name}_{tensor.used}"][:, None]
                means = np.arange(outputs[name].shape[1]) < used
                ordered[name] = np.where(means, outputs[name], np.zeros_like(outputs[name]))
    if "candidates_count" not in outputs:
        return ordered
    rows = [f"candidates_{name}" for name in ("boxes", "scores", "classes", "anchors")]
    by_anchor = [name for port in PORTS.values() for name, t in port.fields() if t.by_anchor]
    by_anchor = [name for name in by_anchor if name in outputs]
    for name in (*rows, *by_anchor):
        ordered[name] = np.zeros_like(outputs[name])
    for image, count in enumerate(outputs["candidates_count"].tolist()):
        count = max(0, min(count, outputs["candidates_anchors"].shape[1]))
        order = np.argsort(outputs["candidates_anchors"][image, :count], kind="stable")
        for name in rows:
            ordered[name][image, :count] = outputs[name][image, :count][order]
        anchors = ordered["candidates_anchors"][image, :count]
        for name in by_anchor:
            ordered[name][image, anchors] = outputs[name][image, anchors]
    return ordered


def _difference(name: str, found: Array, expected: Array, tolerance: Any) -> Difference:
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    allowed = np.zeros_like(b)
    if tolerance != "exact":
        finite = np.isfinite(b)  # what is not must be met as it is
        allowed[finite] = tolerance.atol + tolerance.rtol * np.abs(b[finite])
    wrong = int(np.count_nonzero(~(gap <= allowed)))
    return Difference(name, float(gap.max(initial=0.0)), wrong, gap.size)


def _outputs(step: PatchStep) -> list[tuple[str, str]]:
    names = step.patch.spec.fields(step.patch.spec.outputs)
    return [(t.name, t.buffers[0]) for t in step.tensors if t.name in names]


def frame_of(pixels: Array, layout: FrameLayout) -> Frame:
    """A picture of a case; one without pixels is an unused place of the batch."""
    unused = Frame(pixels, 0, 0, 0, 0, 0, 0)
    return as_frames(pixels, layout=layout)[0] if pixels.size else unused


def _group(value: Given) -> tuple[Array, ...]:
    return (value,) if isinstance(value, np.ndarray) else tuple(value)


def _first_dtype(patch: Patch, name: str) -> str:
    spec = patch.spec.outputs.get(name)
    if spec is None or spec == "port":
        raise VerifyError(f"{patch.name}: a case gives a shape for {name!r}, which is no output")
    return spec.dtype[0]
