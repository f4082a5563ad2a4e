"""Logs as older compilers wrote them, read all the same."""

from __future__ import annotations

from trtpatch.compiler import diagnosis
from trtpatch.compiler.diagnosis import Kernel

TEXT = """\
#line 1 "Args of decode_mine"
struct Args { float* x; };
#line 1 "patches/decode_mine/kernel.cu"
// The kernel.
extern "C" __global__ void decode_mine(const Args args)
{
    args.x[0] = foo;
}
"""

# NVRTC 12.0 shows no source lines.
NVRTC_12_0 = """\
patches/decode_mine/kernel.cu(4): error: identifier "foo" is undefined

patches/decode_mine/kernel.cu(5): warning #12-D: parsing restarts here

At end of source: error: expected a "}"
patches/decode_mine/kernel.cu(3): note #3196-D: to match this "{"

2 errors detected in the compilation of "decode_mine (generated)".
"""

# NVRTC 12.4 compiles what no driver loads.
PTXAS_12_4 = """\
ptxas info    : 4 bytes gmem
ptxas info    : Function properties for _Z4helpPf
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function 'decode_mine' for 'sm_90'
ptxas info    : Function properties for decode_mine
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, 16 bytes cumulative stack size, 49156 bytes smem
"""


def test_a_log_without_source_lines_gets_them_from_the_text() -> None:
    assert [str(problem) for problem in diagnosis.errors(NVRTC_12_0, TEXT)] == [
        'patches/decode_mine/kernel.cu:4:5: identifier "foo" is undefined\n      args.x[0] = foo;',
        'patches/decode_mine/kernel.cu:3:1: expected a "}"\n  {\n  note: to match this "{"',
    ]


def test_spills_of_functions_that_were_not_inlined_count_for_every_kernel() -> None:
    assert diagnosis.kernels(PTXAS_12_4) == (
        Kernel("decode_mine", registers=10, shared_bytes=49156, stack_bytes=16, spill_bytes=12),
    )


def test_too_much_shared_memory_is_seen_where_the_compiler_does_not() -> None:
    kernels = diagnosis.kernels(PTXAS_12_4)
    (problem,) = diagnosis.misfits(kernels, ["decode_mine"], TEXT, arch="sm_90")
    place = "patches/decode_mine/kernel.cu:2:28: kernel 'decode_mine' declares 49156 bytes"
    assert str(problem).startswith(place)


def test_a_log_of_nothing_is_no_remark() -> None:
    assert not list(diagnosis.remarks("", TEXT))
    assert not list(diagnosis.remarks(PTXAS_12_4, TEXT))
    assert diagnosis.kernels("") == ()
