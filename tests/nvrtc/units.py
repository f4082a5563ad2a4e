"""A small unit to compile, and variations of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

FILE = "patches/decode_mine/kernel.cu"
ARGS = '#line 1 "Args of decode_mine"\nstruct Args { const float* x; float* y; };\n'
KERNEL = """\
extern "C" __global__ void decode_mine(const Args args)
{
    args.y[threadIdx.x] = args.x[threadIdx.x];
}
"""


@dataclass(frozen=True)
class Unit:
    text: str
    name: str = "decode_mine"
    options: tuple[str, ...] = ()
    entries: tuple[str, ...] = ("decode_mine",)
    fast_math: bool = False
    args_dtype: np.dtype[Any] = field(
        default_factory=lambda: np.dtype([("x", np.uint64), ("y", np.uint64)], align=True)
    )


def unit(kernel: str = KERNEL, **more: Any) -> Unit:
    return Unit(f'{ARGS}#line 1 "{FILE}"\n{kernel}', **more)
