"""A patch step as one CUDA text, its `struct Args`, and the record that fills it.

The text is all that a compiler gets: `patches/common.cuh`, the generated `Args` and the author's
kernel, with `#line` before each, so that messages name the author's own file and line. Nothing is
included from disk; whoever hashes the text knows all that went into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trtpatch import builtin
from trtpatch.catalog import Patch
from trtpatch.compiler.includes import inline_includes
from trtpatch.errors import CompileError
from trtpatch.plan import PatchStep, Tensor
from trtpatch.spec.dtypes import C_TYPES
from trtpatch.spec.patch import ParamValue
from trtpatch.spec.ports import FRAME_LAYOUTS

_COMMON = "common.cuh"
_UNQUOTABLE = re.compile('["\\\\\\n\ud800-\udfff]')
"""What cannot stand in the name of a file behind `#line`."""


@dataclass(frozen=True)
class Unit:
    """All that is needed to compile a step and to call it.

    Attributes:
        name: the patch's name.
        text: the whole source.
        options: compiler options from the contract.
        fast_math: approximate mathematics, from the contract.
        args_dtype: NumPy record with the layout of `struct Args`.
        entries: names of the kernels.
    """

    name: str
    text: str
    options: tuple[str, ...]
    entries: tuple[str, ...]
    fast_math: bool
    args_dtype: np.dtype[Any] = field(repr=False)


def make_unit(step: PatchStep) -> Unit:
    """Write the CUDA text of a step.

    Raises:
        CompileError: the kernel file cannot be read, or includes what cannot be inlined.
    """
    members: list[str] = []
    record: list[tuple[str, Any, tuple[int, ...]]] = []
    for tensor in step.tensors:
        declaration, shape = _pointer(step, tensor)
        members.append(declaration)
        record.append((tensor.name, np.uint64, shape))
        if tensor.grouped:
            members.append(f"    static constexpr int {tensor.name}_count = {shape[0]};")
        members.append(f"    using {tensor.name}_t = {C_TYPES[tensor.dtype]};")
    for setting in step.settings:
        members.append(f"    const {C_TYPES[setting.dtype]}* {setting.name};")
        record.append((setting.name, np.uint64, ()))
    constants: dict[str, Any] = {**step.sizes, **step.params}
    for name, value in constants.items():
        if isinstance(value, tuple):
            kind = np.float32 if _is_float(step, name) else np.int32
            room = max(1, len(value))  # C++ has no array of none
            members.append(f"    {'float' if kind is np.float32 else 'int'} {name}[{room}];")
            members.append(f"    static constexpr int {name}_count = {len(value)};")
            record.append((name, kind, (room,)))
        else:
            members += _constant(step, name, value)
    args = f'#line 1 "Args of {step.name}"\nstruct Args {{\n' + "\n".join(members) + "\n};\n"
    spec = step.patch.spec
    return Unit(
        name=step.name,
        text=common_text() + args + author_text(step.patch),
        options=spec.options.nvrtc,
        entries=tuple(dict.fromkeys(launch.entry for launch in step.launches)),
        fast_math=spec.options.fast_math,
        args_dtype=np.dtype(record or [("empty", np.uint8, ())], align=True),
    )


def pack(unit: Unit, step: PatchStep, address: Callable[[str], int]) -> np.ndarray[Any, Any]:
    """Fill `Args`.

    Args:
        unit: from `make_unit(step)`.
        step: the step.
        address: gives the memory address of a buffer of the plan by its name.

    Returns:
        `[1]` record to pass by value to each kernel of the unit.
    """
    args = np.zeros(1, unit.args_dtype)
    for tensor in step.tensors:
        addresses = [address(buffer) for buffer in tensor.buffers]
        args[tensor.name] = addresses if tensor.grouped else addresses[0]
    for setting in step.settings:
        args[setting.name] = address(setting.buffer)
    constants: dict[str, Any] = {**step.sizes, **step.params}
    for name, value in constants.items():
        if isinstance(value, tuple) and value:
            args[name] = value
    return args


def _pointer(step: PatchStep, tensor: Tensor) -> tuple[str, tuple[int, ...]]:
    const = "" if tensor.written else "const "
    kind = C_TYPES[tensor.dtype]
    if tensor.ragged:
        return f"    const {kind}* const* {tensor.name};", ()
    if tensor.grouped:
        count = len(tensor.buffers)
        return f"    {const}{kind}* {tensor.name}[{count}];", (count,)
    return f"    {const}{kind}* {tensor.name};", ()


def _is_float(step: PatchStep, name: str) -> bool:
    param = step.patch.spec.params.get(name)
    return param is not None and param.type == "[float]"


def _constant(step: PatchStep, name: str, value: ParamValue) -> list[str]:
    param = step.patch.spec.params.get(name)
    choices: Sequence[str] = param.choices if param else ()
    if param is None and isinstance(value, str):
        choices = FRAME_LAYOUTS
    if choices:
        lines = [
            f"    static constexpr int {name}_{choice.replace('-', '_')} = {index};"
            for index, choice in enumerate(choices)
        ]
        index = choices.index(str(value))
        return [*lines, f"    static constexpr int {name} = {index};"]
    if isinstance(value, bool):
        return [f"    static constexpr bool {name} = {'true' if value else 'false'};"]
    if isinstance(value, int):
        wide = not -(2**31) <= value < 2**31
        kind, suffix = ("long long", "LL") if wide else ("int", "")
        return [f"    static constexpr {kind} {name} = {value}{suffix};"]
    return [f"    static constexpr float {name} = {_float(value)};"]


def _float(value: object) -> str:
    """The nearest float32, written so that the compiler reads exactly that."""
    return f"{float(np.float32(value)).hex()}f"  # type: ignore[arg-type]


def common_text() -> str:
    """What stands before `Args`: patches/common.cuh."""
    path = builtin.patches_folder() / _COMMON
    return f'#line 1 "patches/{_COMMON}"\n{path.read_text(encoding="utf-8")}\n'


def author_text(patch: Patch) -> str:
    """What stands behind `Args`: the patch's kernel.cu, with what it includes in place.

    Raises:
        CompileError: a file cannot be read, or an include cannot be inlined.
    """
    path = patch.kernel
    label = _UNQUOTABLE.sub("_", "/".join(path.parts[-3:]))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"{path}: {patch.name} has no readable kernel file: {error}") from None
    # A kernel may include what its text begins with: that pleases an editor and changes nothing.
    beside = (patch.folder / _COMMON, patch.folder.parent / _COMMON)
    present = [builtin.patches_folder() / _COMMON, *(one for one in beside if not one.exists())]
    return inline_includes(text, folder=patch.folder, file_label=label, present=present)
