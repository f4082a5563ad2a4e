"""Text and architecture to a cubin: what comes out, and what may be asked for."""

from __future__ import annotations

import logging
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.nvrtc.units import FILE, KERNEL, body, failure, sections, unit
from trtpatch.compiler import nvrtc
from trtpatch.compiler.compile import compile_unit
from trtpatch.unit import Unit

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def machine_code(of: Unit) -> bytes:
    return sections(compile_unit(of, arch="sm_90").code)[".text.decode_mine"]


@pytest.mark.parametrize("arch", ARCHS)
def test_every_architecture(arch: str) -> None:
    kernel = """
struct float16 { unsigned short bits; };
__device__ float load(const float16* x)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x->bits));
    return wide;
}
extern "C" __global__ void __launch_bounds__(256) decode_mine(const Args args)
{
    __shared__ float tile[256];
    tile[threadIdx.x] = load(reinterpret_cast<const float16*>(args.x) + threadIdx.x);
    __syncthreads();
    float sum = tile[255 - threadIdx.x];
    for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (__ballot_sync(0xffffffffu, sum > 1.0f)) atomicAdd(args.y, expf(sum));
}
"""
    cubin = compile_unit(unit(kernel), arch=arch)

    assert (cubin.name, cubin.arch, cubin.log) == ("decode_mine", arch, "")
    assert cubin.code[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", cubin.code, 18) == (190,)  # EM_CUDA
    (flags,) = struct.unpack_from("<I", cubin.code, 48)  # where the number is changed with CUDA 13
    assert int(arch[3:]) in (flags & 0xFF, flags >> 8 & 0xFF)
    assert cubin.compiler == f"NVRTC {nvrtc.load().release}"
    (use,) = cubin.kernels
    assert (use.name, use.shared_bytes, use.stack_bytes, use.spill_bytes) == (
        "decode_mine",
        1024,
        0,
        0,
    )
    assert 8 <= use.registers <= 64


def test_spills_and_local_arrays_are_counted() -> None:
    spilling = """
extern "C" __global__ void decode_mine(const Args args)
{
    float r[64], sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; ++i) r[i] = args.x[i * 64 + threadIdx.x];
#pragma unroll
    for (int i = 0; i < 64; ++i) sum += r[i] * args.x[i];
#pragma unroll
    for (int i = 0; i < 64; ++i) args.y[i * 64 + threadIdx.x] = r[i] * sum;
}
"""
    (use,) = compile_unit(unit(spilling, options=("--maxrregcount=24",)), arch="sm_90").kernels
    assert use.registers <= 24
    assert use.spill_bytes > 0
    assert use.stack_bytes > 0
    (use,) = compile_unit(unit(spilling), arch="sm_90").kernels
    assert (use.spill_bytes, use.stack_bytes) == (0, 0)

    indexed = "float q[64]; for (int i = 0; i < int(args.x[3]); ++i) q[i % 64] = args.x[i]; "
    indexed += "args.y[0] = q[int(args.x[1])] + q[int(args.x[2])];"
    (use,) = compile_unit(body(indexed), arch="sm_90").kernels
    assert use.stack_bytes == 256
    assert use.spill_bytes == 0


def test_several_kernels_each_have_their_numbers() -> None:
    second = KERNEL.replace("decode_mine", "second").replace("{\n", "{ __shared__ float q[64];\n")
    second = second.replace("args.x[threadIdx.x]", "q[args.x[0] > 0.0f]")
    cubin = compile_unit(unit(KERNEL + second, entries=("second", "decode_mine")), arch="sm_90")
    assert {kernel.name: kernel.shared_bytes for kernel in cubin.kernels} == {
        "decode_mine": 0,
        "second": 256,
    }


def test_the_same_text_gives_the_same_bytes_also_from_threads() -> None:
    with ThreadPoolExecutor(4) as threads:
        codes = set(threads.map(lambda _: compile_unit(unit(), arch="sm_80").code, range(8)))
    assert len(codes) == 1


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("x * y + 1.5f", "__fadd_rn(__fmul_rn(x, y), 1.5f)"),
        ("x / y", "__fdiv_rn(x, y)"),
        ("sqrtf(x)", "__fsqrt_rn(x)"),
    ],
)
def test_arithmetic_is_rounded_step_by_step(written: str, exact: str) -> None:
    def of(expression: str, **more: Any) -> Unit:
        return body(f"const float x = args.x[0], y = args.x[1]; args.y[0] = {expression};", **more)

    assert machine_code(of(written)) == machine_code(of(exact))
    assert machine_code(of(written)) != machine_code(of(written, fast_math=True))


def test_fast_math_is_the_contracts_choice() -> None:
    precise = body("args.y[0] = sinf(args.x[0]);")
    approximate = body("args.y[0] = __sinf(args.x[0]);")
    assert machine_code(precise) != machine_code(approximate)
    assert machine_code(replace(precise, fast_math=True)) == machine_code(
        replace(approximate, fast_math=True)
    )


def test_pointers_are_restrict_and_lines_are_known() -> None:
    cubin = compile_unit(body("args.y[0] = args.x[0];"), arch="sm_90")
    assert FILE.rpartition("/")[2].encode() in sections(cubin.code)[".debug_line"]


def test_a_warning_is_logged_in_the_authors_terms(caplog: pytest.LogCaptureFixture) -> None:
    cubin = compile_unit(body("int unused; args.y[0] = args.x[0];"), arch="sm_90")
    assert cubin.log.startswith(f'{FILE}:3:9: variable "unused" was declared but never referenced')
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert cubin.log in record.getMessage()
    assert "suppress" not in cubin.log


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("-arch=sm_80", "the architecture is the GPU's own"),
        ("--gpu-architecture=compute_80", "the architecture is the GPU's own"),
        ("-I/usr/include", "no file is read"),
        ("--include-path=/usr/include", "no file is read"),
        ("-include=box.cuh", "no file is read"),
        ("-default-device", "write __device__"),
        ("--device-as-default-execution-space", "write __device__"),
        ("--use_fast_math", "fast_math: true"),
        ("-ftz=true", "fast_math: true"),
        ("-DN=4", "parameter of the contract"),
        ("--std=c++20", "same for every patch"),
        ("-rdc=true", "nothing to link"),
        ("--no-such-option", "unknown here"),
        ("-maxrregcount=32 -arch=sm_80", "unknown here"),
    ],
)
def test_options_that_are_not_a_contracts_are_refused_with_the_reason(
    option: str, reason: str
) -> None:
    message, _ = failure(unit(options=(option,)))
    assert message.startswith(f"patch decode_mine: option {option!r} in the contract is refused")
    assert reason in message


@pytest.mark.parametrize("option", ["--fmad=true", "-fmad=false", "--maxrregcount=32"])
@pytest.mark.parametrize("fast_math", [False, True])
def test_options_that_a_contract_may_set(option: str, fast_math: bool) -> None:
    assert compile_unit(unit(options=(option,), fast_math=fast_math), arch="sm_90").kernels


@pytest.mark.parametrize("arch", ["foo", "", "90", "compute_90", "sm_90 -I/", "SM_90"])
def test_what_is_no_architecture_is_refused(arch: str) -> None:
    assert "one is written sm_90" in failure(unit(), arch=arch)[0]


def test_an_architecture_that_nvrtc_does_not_know_is_told_with_those_it_does() -> None:
    message, _ = failure(unit(), arch="sm_999")
    for part in (f"NVRTC {nvrtc.load().release}", "sm_999", *ARCHS, "pip install -U nvidia-cuda"):
        assert part in message
    assert "pip install cupy-cuda12x" in failure(unit(), arch="sm_20")[0]
    assert "no such GPU" in failure(unit(), arch="sm_91")[0]
