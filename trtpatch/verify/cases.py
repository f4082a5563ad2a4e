"""A patch's cases: inputs that matter to it, bound to its contract and run on an executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Union

import numpy as np

from trtpatch import executors
from trtpatch.catalog import Patch
from trtpatch.compiler.cubins import Cubins
from trtpatch.engines import Tensor as EngineTensor
from trtpatch.errors import VerifyError
from trtpatch.frame import Frame, as_frames
from trtpatch.plan import ALIGNMENT, PatchStep, Plan
from trtpatch.planner import plan_patches
from trtpatch.scripts import run_script, telling_the_line
from trtpatch.spec.dtypes import ITEMSIZE
from trtpatch.spec.patch import ParamValue, TensorSpec
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
        offsets: elements by which a tensor of the engine begins past a multiple of 256 bytes.
    """

    name: str
    inputs: Mapping[str, Given]
    params: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    frame: FrameLayout = "rgb"
    offsets: Mapping[str, int] = field(default_factory=dict)


def load_cases(patch: Patch) -> list[Case]:
    """The cases of a patch's `cases.py`.

    Raises:
        VerifyError: there is no `cases.py`, or it does not run, or gives something else.
    """
    path = patch.folder / "cases.py"
    if not path.is_file():
        raise VerifyError(f"{path}: {patch.name} has no cases")
    module = run_script(path, f"trtpatch_cases_{patch.name}")
    with telling_the_line(path):
        cases = list(module.cases())
    for case in cases:
        if wrong := _what_is_wrong(case):
            raise VerifyError(f"{path}: {wrong}")
    return cases


def _what_is_wrong(case: Case) -> str:
    if not isinstance(case, Case):
        return f"cases() gives {case!r}; expected Case(...)"
    if not case.inputs:
        return f"case {case.name!r} has no inputs"
    for name, value in case.inputs.items():
        several = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(one, np.ndarray) for one in several):
            return f"case {case.name!r}: {name}: expected a NumPy array, or a list of them"
    return ""


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
    given = {name: as_group(value) for name, value in case.inputs.items() if name not in _FRAME}
    outputs = {
        name: EngineTensor(name, case.dtypes.get(name, _first_dtype(patch, name)), shape)
        for name, shape in case.shapes.items()
        if name != "model"
    }
    images = case.inputs.get("frame_images")
    first = next(iter(case.inputs.values()))
    batch = len(images) if images is not None else len(as_group(first)[0])
    plan = plan_patches(
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
    for name, count in case.offsets.items():
        plan = _shift(plan, patch, name, count)
    return plan


_FRAME = frozenset(name for name, _ in PORTS["frame"].fields())


def engine_tensors(patch: Patch) -> tuple[str, ...]:
    """Inputs and outputs that an engine may give or take: those that are no port."""
    both = {**patch.spec.inputs, **patch.spec.outputs}
    return tuple(name for name, spec in both.items() if isinstance(spec, TensorSpec))


def _shift(plan: Plan, patch: Patch, name: str, count: int) -> Plan:
    """Let a tensor begin `count` elements past an aligned address."""
    if name not in engine_tensors(patch):
        raise VerifyError(f"{patch.name}: {name!r} cannot be shifted: no tensor of an engine")
    buffers = dict(plan.buffers)
    (step,) = plan.patch_steps
    for buffer in next(one for one in step.tensors if one.name == name).buffers:
        b = buffers[buffer]
        end = max(o.offset + o.nbytes for o in buffers.values() if o.region == b.region)
        start = -(-end // ALIGNMENT) * ALIGNMENT
        buffers[buffer] = replace(b, offset=start + count * ITEMSIZE[b.dtype])
    return replace(plan, buffers=buffers)


def run_case(
    plan: Plan, case: Case, executor: str, *, cubins: Cubins | None = None
) -> dict[str, Array]:
    """Run one planned case; `cubins` is the user's own cache when not given.

    Returns:
        The patch's outputs, by field. Outputs and scratch are poisoned beforehand.
    """
    with closing(executors.make_executor(executor, plan, None, cubins=cubins)) as walker:
        fill(walker, plan, case)
        walker.walk()
        return read_outputs(walker, plan)


def fill(walker: executors.Executor, plan: Plan, case: Case, *, poison: int = POISON) -> None:
    """Give an executor a case's inputs, and fill all that the patch writes with a byte."""
    (step,) = plan.patch_steps
    for tensor in step.tensors:
        if tensor.name in case.inputs and not tensor.ragged:
            arrays = as_group(case.inputs[tensor.name])
            for buffer, array in zip(tensor.buffers, arrays, strict=True):
                walker.write(buffer, array)
        elif tensor.written:
            b = plan.buffers[tensor.buffers[0]]
            junk = np.full(b.nbytes, poison, np.uint8).view(b.dtype).reshape(b.shape)
            walker.write(b.name, junk)
    images = case.inputs.get("frame_images", ())
    walker.put_frames([frame_of(one, case.frame) for one in images])


def read_outputs(walker: executors.Executor, plan: Plan) -> dict[str, Array]:
    """What the patch wrote, by field."""
    (step,) = plan.patch_steps
    return {name: walker.read(buffer) for name, buffer in _outputs(step)}


def _outputs(step: PatchStep) -> list[tuple[str, str]]:
    names = step.patch.spec.fields(step.patch.spec.outputs)
    return [(t.name, t.buffers[0]) for t in step.tensors if t.name in names]


def frame_of(pixels: Array, layout: FrameLayout) -> Frame:
    """A picture of a case; one without pixels is an unused place of the batch."""
    unused = Frame(pixels, 0, 0, 0, 0, 0, 0)
    return as_frames(pixels, layout=layout)[0] if pixels.size else unused


def as_group(value: Given) -> tuple[Array, ...]:
    """The tensors of a group; one that is none, alone."""
    return (value,) if isinstance(value, np.ndarray) else tuple(value)


def _first_dtype(patch: Patch, name: str) -> str:
    spec = patch.spec.outputs.get(name)
    if spec is None or spec == "port":
        raise VerifyError(f"{patch.name}: a case gives a shape for {name!r}, which is no output")
    return spec.dtype[0]
