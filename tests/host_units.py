"""Small units of a test's own: a CUDA text, and arrays in place of its pointers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from trtpatch.compiler.cubins import Cubins
from trtpatch.executors.findings import Field, Finding
from trtpatch.executors.host_compiler import find_compiler, is_clang
from trtpatch.executors.host_unit import HostUnit
from trtpatch.executors.sanitizer import sanitize
from trtpatch.plan import Launch
from trtpatch.spec.dtypes import C_TYPES
from trtpatch.unit import Unit

Array = np.ndarray[Any, Any]

FILE = "patches/mine/kernel.cu"


def unit_of(text: str, fields: dict[str, Any], name: str = "mine") -> Unit:
    """A unit whose `Args` has a pointer for each array and a constant for each number."""
    members, record = [], []
    for field, value in fields.items():
        if isinstance(value, np.ndarray):
            members.append(f"{C_TYPES[value.dtype.name]}* {field};")
            record.append((field, np.uint64))
        else:
            kind = "int" if isinstance(value, int) else "float"
            members.append(f"static constexpr {kind} {field} = {value!r};")
    return Unit(
        name=name,
        text="struct float16 { unsigned short bits; };\nstruct Args {\n"
        + "\n".join(members)
        + f'\n}};\n#line 1 "{FILE}"\n{text}',
        options=(),
        entries=tuple(
            re.findall(r"__global__\s+void\s+(?:__launch_bounds__\(\w+\)\s+)?(\w+)", text)
        ),
        fast_math=False,
        args_dtype=np.dtype(record, align=True),
    )


def size3(size: Any) -> tuple[int, int, int]:
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (*sizes, 1, 1)[:3]


def launch_of(
    unit: Unit, *, grid: Any = 1, block: Any = 32, shared_bytes: int = 0, entry: str = ""
) -> Launch:
    return Launch(entry or unit.entries[0], size3(grid), size3(block), shared_bytes)


def needs_gcc(why: str) -> None:
    if is_clang(find_compiler()):
        pytest.skip(why)


class Bench:
    """Compiles and runs texts, with one cache."""

    def __init__(self, cubins: Cubins) -> None:
        self.cubins = cubins

    def run(
        self,
        text: str,
        *,
        grid: Any = 1,
        block: Any = 32,
        shared_bytes: int = 0,
        seed: int = 0,
        entry: str = "",
        **fields: Any,
    ) -> None:
        """Run a kernel on arrays, which it may write."""
        unit = unit_of(text, fields)
        args = np.zeros(1, unit.args_dtype)
        for field in unit.args_dtype.names or ():
            args[field] = fields[field].ctypes.data
        launch = launch_of(unit, grid=grid, block=block, shared_bytes=shared_bytes, entry=entry)
        HostUnit.build(unit, self.cubins).launch(launch, args, seed=seed)

    def sanitize(
        self,
        text: str,
        *,
        grid: Any = 1,
        block: Any = 32,
        shared_bytes: int = 0,
        shuffles: int = 4,
        outputs: Sequence[str] = ("out",),
        between: Sequence[str] = (),
        cleared: Sequence[str] = (),
        launches: Sequence[Launch] = (),
        timeout_s: float = 60.0,
        **arrays: Any,
    ) -> tuple[Finding, ...]:
        """Look for faults.

        Arrays are inputs unless they are named: `outputs`, or `between` for scratch; those that
        are `cleared` begin as zeros.
        """
        unit = unit_of(text, arrays)
        offsets = unit.args_dtype.fields or {}
        fields = []
        for name in unit.args_dtype.names or ():
            role = "out" if name in outputs else "scratch" if name in between else "in"
            array = arrays[name]
            data = np.zeros_like(array) if name in cleared else array if role == "in" else None
            fields.append(Field(name, offsets[name][1], array.dtype, array.shape, role, data))
        return sanitize(
            unit,
            launches or [launch_of(unit, grid=grid, block=block, shared_bytes=shared_bytes)],
            fields,
            args=np.zeros(1, unit.args_dtype),
            cubins=self.cubins,
            shuffles=shuffles,
            timeout_s=timeout_s,
        )
