"""A kernel's text beside its contract: what one of them names and the other does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trtpatch.catalog import Patch
from trtpatch.lint.contract import field_names, remark
from trtpatch.lint.kernel_text import Function, KernelText
from trtpatch.lint.remarks import Remark, Severity
from trtpatch.spec.expressions import Expression
from trtpatch.spec.patch import LaunchSpec, TensorSpec
from trtpatch.spec.ports import PORTS
from trtpatch.spec.validate import choose

_AXES = "xyz"
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\d+)")


def lint_kernel(patch: Patch, text: KernelText) -> Iterator[Remark]:
    """Fields, entries and launches."""
    entries = [launch.entry for launch in patch.spec.launch]
    reached = text.reached(entries)
    yield from _unknown_fields(patch, text)
    yield from _entries(patch, text)
    if not set(entries) <= text.kernels.keys():
        return  # what is used cannot be told
    yield from _unused(patch, {use.name for one in reached for use in one.uses()})
    for index, launch in enumerate(patch.spec.launch):
        yield from _launch(patch, text, index, launch)


def _remark(
    text: KernelText, offset: int, rule: str, message: str, severity: Severity = "error"
) -> Remark:
    return Remark(rule, severity, *text.place(offset), message)


def _unknown_fields(patch: Patch, text: KernelText) -> Iterator[Remark]:
    known = field_names(patch)
    told = set()
    for function in (one for many in text.functions.values() for one in many):
        for use in function.uses():
            if use.certain and use.name not in known and use.name not in told:
                told.add(use.name)
                message = f"Args has no field {use.name!r}.{choose(use.name, known)}"
                yield _remark(text, use.offset, "unknown-field", message)


def _entries(patch: Patch, text: KernelText) -> Iterator[Remark]:
    kernels = text.kernels
    for index, launch in enumerate(patch.spec.launch):
        if launch.entry not in kernels:
            message = f"kernel.cu has no kernel {launch.entry!r}.{choose(launch.entry, kernels)}"
            yield remark(patch, ("launch", index, "entry"), "entry", message)
    launched = {launch.entry for launch in patch.spec.launch}
    for name, kernel in kernels.items():
        offset = kernel.start + kernel.header.index("__global__")
        if name not in launched:
            message = f"kernel {name} is launched by no 'launch' of patch.yaml"
            yield _remark(text, offset, "entry", message, "warning")
        elif 'extern "' not in kernel.header:
            message = f'kernel {name} is not extern "C", so it cannot be found by its name'
            yield _remark(text, offset, "entry", message)


def _unused(patch: Patch, used: set[str]) -> Iterator[Remark]:
    spec = patch.spec
    sizing = spec.sizing() | _shape_names(patch)
    for name in spec.params:
        if name not in used and name not in sizing:
            message = f"the kernel never uses parameter {name}"
            yield remark(patch, ("params", name), "unused", message)
    for name in spec.scratch:
        if name not in used:
            yield remark(patch, ("scratch", name), "unused", f"the kernel never uses {name}")
    for name in spec.inputs:
        fields = [field for field, _ in PORTS[name].fields()] if name in PORTS else [name]
        if not used.intersection(fields):
            message = f"the kernel never reads {name}; take it out of 'inputs' if it needs none"
            yield remark(patch, ("inputs", name), "unread-input", message)
    for name in spec.outputs:
        fields = [field for field, _ in PORTS[name].fields()] if name in PORTS else [name]
        missing = [field for field in fields if field not in used]
        if missing:
            message = f"the kernel never writes {' nor '.join(missing)}"
            yield remark(patch, ("outputs", name), "unwritten-output", message)
    if "frame_images" in used and "frame" in spec.inputs and "frame_layout" not in used:
        message = (
            f"frames may be {' or '.join(spec.frames)}, and the kernel does not look at"
            " args.frame_layout"
        )
        yield remark(patch, ("inputs", "frame"), "unused", message)


def _shape_names(patch: Patch) -> set[str]:
    tensors = [one for one in patch.spec.inputs.values() if isinstance(one, TensorSpec)]
    return {name for one in tensors for dim in one.shape for name in dim.names}


def _launch(patch: Patch, text: KernelText, index: int, launch: LaunchSpec) -> Iterator[Remark]:
    where = ("launch", index)
    kernel = text.kernels[launch.entry]
    reached = text.reached([launch.entry])
    words = "\n".join(one.body for one in reached)
    axes = launch.over or launch.grid
    for place, axis in enumerate(axes[::-1]):
        letter = _AXES[place]
        block = launch.block[place] if place < len(launch.block) else Expression("1")
        if axis.text != "1" and f"blockIdx.{letter}" not in words:
            key = "over" if launch.over else "grid"
            message = f"'{axis}' goes along {letter}, and the kernel never reads blockIdx.{letter}"
            yield remark(patch, (*where, key), "cover", message)
        if block.text != "1" and not re.search(rf"threadIdx\.{letter}\b", words):
            message = (
                f"a block has {block} threads along {letter}, and the kernel never reads"
                f" threadIdx.{letter}"
            )
            yield remark(patch, (*where, "block"), "cover", message)
        if launch.over and block.text != "1":
            yield from _bounds(patch, where, axis, reached)
    for letter in _AXES[max(len(axes), len(launch.block)) :]:
        if match := re.search(rf"\b(?:blockIdx|threadIdx)\.{letter}\b", kernel.body):
            message = f"{match[0]} is always 0: the launch has {len(axes)} axes"
            yield _remark(text, kernel.body_start + match.start(), "cover", message, "warning")
    number = launch.per_thread.text
    if number.isdecimal() and number != "1" and not re.search(rf"\b{number}\b", words):
        message = (
            f"each thread has {number} elements along x, and the number {number} is nowhere in the"
            " kernel"
        )
        yield remark(patch, (*where, "per_thread"), "cover", message, "warning")
    yield from _resources(patch, text, where, launch, kernel, words)


def _bounds(
    patch: Patch,
    where: tuple[str, int],
    axis: Expression,
    reached: Sequence[Function],
) -> Iterator[Remark]:
    """An axis whose last block has more threads than elements, and no end that they look at."""
    names = axis.names & field_names(patch)
    if names and not any(_compared(name, one) for name in names for one in reached):
        message = (
            f"the last block has threads past '{axis}', and the kernel never compares with"
            f" {' or '.join(sorted(names))}"
        )
        yield remark(patch, (*where, "over"), "cover", message)


def _compared(name: str, function: Function) -> bool:
    """Whether a size is compared with, divided by, or handed on to a function."""
    owner = r"(?:\w+\s*(?:\.|::)\s*)"
    before, after = r"[<>=!(,%/?]\s*", r"\s*(?:[<>,]|[=!]=)"
    pattern = rf"{before}{owner}{name}\b|{owner}{name}\b{after}"
    used = any(use.name == name for use in function.uses())
    return used and re.search(pattern, function.body) is not None


def _resources(
    patch: Patch,
    text: KernelText,
    where: tuple[str, int],
    launch: LaunchSpec,
    kernel: Function,
    words: str,
) -> Iterator[Remark]:
    dynamic = re.search(r"\bextern\s+__shared__", words)
    if dynamic and launch.shared.text == "0":
        message = f"{launch.entry} has extern __shared__ memory; say how many bytes in 'shared'"
        yield remark(patch, where, "shared", message)
    if not dynamic and launch.shared.text != "0":
        message = f"{launch.entry} has no extern __shared__ array for the {launch.shared} bytes"
        yield remark(patch, (*where, "shared"), "shared", message, "warning")
    threads = [int(dim.text) for dim in launch.block if dim.text.isdecimal()]
    if (match := _BOUNDS.search(kernel.header)) and len(threads) == len(launch.block):
        most, count = int(match[1]), 1
        for one in threads:
            count *= one
        if count > most:
            message = (
                f"__launch_bounds__ allows {most} threads a block, patch.yaml asks for {count}"
            )
            yield _remark(text, kernel.start + match.start(), "cover", message)
