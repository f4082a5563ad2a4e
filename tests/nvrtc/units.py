"""A small unit to compile, and variations of it."""

from __future__ import annotations

from typing import Any

import numpy as np

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
