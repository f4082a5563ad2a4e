"""One case of a patch under the sanitizers of the host executor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.findings import Field, Finding
from trtpatch.executors.sanitizer import sanitize
from trtpatch.plan import PatchStep, Plan
from trtpatch.plan import Tensor as PlanTensor
from trtpatch.unit import Unit, make_unit, pack
from trtpatch.verify.cases import Array, Case, frame_of
from trtpatch.verify.comparison import in_order


def sanitize_case(
    case: Case, plan: Plan, *, cubins: Cubins, shuffles: int, timeout_s: float
) -> tuple[Finding, ...]:
    """Look for faults of a patch's kernels in one case.

    Args:
        case: the inputs.
        plan: of the patch, for the case.
        cubins: the cache of compiled kernels.
        shuffles: how many orders of blocks and threads to try beside the natural one.
        timeout_s: seconds for each of the two programs that run it.

    Raises:
        CompileError: the kernel does not compile, or uses what the host cannot do.
    """
    (step,) = plan.patch_steps
    unit = make_unit(step)
    return sanitize(
        unit,
        step.launches,
        list(_fields(unit, step, plan, case)),
        args=pack(unit, step, lambda _: 0),
        cubins=cubins,
        shuffles=shuffles,
        timeout_s=timeout_s,
        meaning=in_order,
    )


def _fields(unit: Unit, step: PatchStep, plan: Plan, case: Case) -> Iterator[Field]:
    offsets = {name: place[1] for name, place in (unit.args_dtype.fields or {}).items()}
    for setting in step.settings:
        value = np.full(1, setting.value, setting.dtype)
        yield _given(setting.name, offsets[setting.name], value)
    images = [np.asarray(image) for image in case.inputs.get("frame_images", ())]
    frames = [frame_of(image, case.frame) for image in images]
    sizes = [(frame.height, frame.width, frame.line_bytes) for frame in frames]
    for tensor in step.tensors:
        offset = offsets[tensor.name]
        if tensor.ragged:
            yield _given(tensor.name, offset, np.zeros(len(images), np.uint64))
            for index, image in enumerate(images):
                name = f"{tensor.name}[{index}]"
                yield _given(name, 8 * index, image, table=tensor.name)
        elif tensor.name == "frame_sizes":
            yield _given(tensor.name, offset, np.array(sizes, np.int32).reshape(-1, 3))
        else:
            yield from _tensor_fields(tensor, offset, step, plan, case.inputs)


def _tensor_fields(
    tensor: PlanTensor, offset: int, step: PatchStep, plan: Plan, inputs: Mapping[str, Any]
) -> Iterator[Field]:
    given = inputs.get(tensor.name)
    arrays = (given,) if isinstance(given, np.ndarray) else given
    outputs = step.patch.spec.fields(step.patch.spec.outputs)
    for index, name in enumerate(tensor.buffers):
        buffer = plan.buffers[name]
        role: Literal["in", "out", "scratch"] = "in"
        data = arrays[index] if arrays else None
        if data is None:
            role = "out" if tensor.name in outputs else "scratch"
            if buffer.cleared:
                data = np.zeros(buffer.shape, buffer.dtype)
        label = f"{tensor.name}[{index}]" if tensor.grouped else tensor.name
        dtype = np.dtype(buffer.dtype)
        yield Field(label, offset + 8 * index, dtype, buffer.shape, role, data)


def _given(name: str, offset: int, data: Array, *, table: str = "") -> Field:
    return Field(name, offset, data.dtype, data.shape, "in", data, table)
