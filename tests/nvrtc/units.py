"""A small unit to compile, and variations of it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from trtpatch.compiler.compile import compile_unit
from trtpatch.errors import CompileError, Problem
from trtpatch.unit import Unit

FILE = "patches/decode_mine/kernel.cu"
ARGS = '#line 1 "Args of decode_mine"\nstruct Args { const float* x; float* y; };\n'
KERNEL = """\
extern "C" __global__ void decode_mine(const Args args)
{
    args.y[threadIdx.x] = args.x[threadIdx.x];
}
"""


def unit_of(text: str, **more: Any) -> Unit:
    plain: dict[str, Any] = {
        "name": "decode_mine",
        "options": (),
        "entries": ("decode_mine",),
        "fast_math": False,
        "args_dtype": np.dtype([("x", np.uint64), ("y", np.uint64)], align=True),
    }
    return Unit(text=text, **{**plain, **more})


def unit(kernel: str = KERNEL, **more: Any) -> Unit:
    return unit_of(f'{ARGS}#line 1 "{FILE}"\n{kernel}', **more)


def body(statement: str, **more: Any) -> Unit:
    """A unit whose kernel is one statement, on line 3."""
    return unit(KERNEL.replace("args.y[threadIdx.x] = args.x[threadIdx.x];", statement), **more)


def failure(wrong: Unit, *, arch: str = "sm_90") -> tuple[str, tuple[Problem, ...]]:
    with pytest.raises(CompileError) as caught:
        compile_unit(wrong, arch=arch)
    return str(caught.value), caught.value.problems


def only(wrong: Unit) -> str:
    """The one mistake of a unit, with its place."""
    message, problems = failure(wrong)
    assert message.startswith("patch decode_mine ")
    (problem,) = problems
    assert str(problem) in message
    return str(problem)


def sections(elf: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file."""
    at, size, count, names = struct.unpack_from("<Q", elf, 40) + struct.unpack_from("<3H", elf, 58)
    heads = [struct.unpack_from("<IIQQQQ", elf, at + size * number) for number in range(count)]
    strings = heads[names][4]
    return {
        elf[strings + name : elf.index(b"\0", strings + name)].decode(): elf[start : start + length]
        for name, kind, _, _, start, length in heads
        if kind != 8  # NOBITS
    }
