"""Faults that were planted are found, each with its place; kernels without one give nothing."""

import numpy as np
import pytest

from tests.host_units import FILE, launch_of, needs_gcc, unit_of

SIGNATURE = 'extern "C" __global__ void kernel(const Args args)\n{\n'
VALUES = np.arange(256, dtype=np.float32)
OUT = np.zeros(256, np.float32)


def line_of(text, mark):
    assert text.count(mark) == 1, mark
    return text[: text.index(mark)].count("\n") + 1


def of_kind(findings, kind):
    return [finding for finding in findings if finding.kind == kind]


def test_out_of_bounds_by_one(bench):
    text = (
        "__device__ float get(const float* row, int at) { return row[at]; } // helper\n"
        + SIGNATURE
        + """    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < 256)
        args.out[at] = get(args.values, at + 1); // reads one too far
    if (at <= 256)
        args.small[at].bits = 1; // writes one too far
    if (at < 3)
        args.bytes[at - 1] = 2; // before the first
}"""
    )
    arrays = {"out": OUT, "small": np.zeros(256, np.float16), "bytes": np.zeros(3, np.uint8)}
    found = of_kind(
        bench.sanitize(text, grid=9, outputs=list(arrays), values=VALUES, **arrays),
        "out-of-bounds",
    )
    assert {(one.line, one.buffer) for one in found} == {
        (line_of(text, "// helper"), "values"),
        (line_of(text, "// writes"), "small"),
        (line_of(text, "// before"), "bytes"),
    }
    assert {one.file for one in found} == {FILE}
    assert {one.entry for one in found} == {"kernel"}
    messages = "\n".join(map(str, found))
    assert "reads 4 bytes, at element 256 of float32 [256], 256 elements" in messages
    assert f"(by way of {FILE}:{line_of(text, '// reads')})" in messages
    assert "writes 2 bytes, at element 256 of float16 [256]" in messages
    assert "writes 1 bytes, at element -1 of uint8 [3]" in messages


HELPERS = """#line 40 "patches/common.cuh"
__device__ INLINE float get(const float* row, int at) { return row[at]; }
__device__ INLINE int rest(int whole, int part) { return whole % part; }
__device__ INLINE float neighbour(float mine) { return __shfl_xor_sync(~0u, mine, 1); }
__device__ INLINE void meet() { __syncthreads(); }
__device__ INLINE void stop() { __trap(); }
#line 7 "patches/mine/kernel.cu"
"""


@pytest.mark.parametrize("inline", ["inline", "__noinline__"])
@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("args.out[threadIdx.x] = get(args.values, threadIdx.x - 1);", "out-of-bounds", 40),
        ("args.out[threadIdx.x] = rest(7, threadIdx.x);", "division", 41),
        ("if (threadIdx.x < 8) args.out[threadIdx.x] = neighbour(1.0f);", "mask", 42),
        ("if (threadIdx.x < 8) meet();", "divergence", 43),
        ("if (threadIdx.x == 8) stop();", "trap", 44),
    ],
)
def test_the_kernels_own_line_is_named_and_the_shared_helpers_beside_it(
    bench, code, kind, line, inline
):
    text = HELPERS.replace("INLINE", inline) + SIGNATURE + code + "\n}"
    one, *_ = of_kind(bench.sanitize(text, block=256, values=VALUES, out=OUT), kind)
    assert (one.file, one.line) == (FILE, 9)
    assert f"(by way of patches/common.cuh:{line})" in one.message


@pytest.mark.parametrize(
    ("code", "buffer"),
    [
        ("__shared__ float a[30], b[30];\nput(b, threadIdx.x % 30);\nput(a, threadIdx.x);", "a"),
        ("extern __shared__ float a[];\nput(a, threadIdx.x);", "dynamic shared memory"),
        ("float a[31];\nput(a, threadIdx.x);", "a"),
    ],
)
def test_out_of_bounds_of_shared_and_local_arrays(bench, code, buffer):
    needs_gcc("clang puts no guard zones between shared arrays")
    text = (
        "__device__ __noinline__ void put(float* row, int at) { row[at] = 1; } // helper\n"
        + SIGNATURE
        + code
        + "\nargs.out[threadIdx.x] = a[threadIdx.x % 8];\n}"
    )
    found = bench.sanitize(text, shared_bytes=120, out=np.zeros(32, np.float32))
    (one,) = of_kind(found, "out-of-bounds")
    assert (one.file, one.line, one.buffer) == (FILE, line_of(text, "// helper"), buffer)


def test_an_access_to_nowhere(bench):
    text = SIGNATURE + "args.out[threadIdx.x * 100000000ll] = 1;\n}"
    (one,) = of_kind(bench.sanitize(text, out=OUT), "out-of-bounds")
    assert (one.file, one.line) == (FILE, 3)


def test_an_unaligned_float4(bench):
    needs_gcc("clang does not check the copy of a whole struct")
    text = (
        SIGNATURE
        + """    const float4 four =
        *reinterpret_cast<const float4*>(args.values + threadIdx.x);
    args.out[threadIdx.x] = four.x;
}"""
    )
    found = bench.sanitize(text, values=VALUES, out=np.zeros(32, np.float32))
    assert {one.kind for one in found} == {"alignment"}
    assert {(one.file, one.line, one.buffer) for one in found} <= {
        (FILE, 3, "values"),
        (FILE, 4, "values"),
    }
    assert "float4" in found[0].message
    assert "requires 16 byte alignment" in found[0].message
    assert "element 1 of float32 [256]" in found[0].message


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        ("args.out[threadIdx.x] = (int)threadIdx.x + 2147483647;", "undefined", "signed integer"),
        ("args.out[threadIdx.x] = 1 << (threadIdx.x + 10);", "undefined", "shift exponent 32"),
        ("args.out[threadIdx.x] = (int)(args.values[5] * 1e9f);", "undefined", "outside the range"),
        ("args.out[threadIdx.x] = 5 / (int)args.values[0];", "division", "division by zero"),
    ],
)
def test_what_cpp_leaves_undefined(bench, code, kind, message):
    text = SIGNATURE + code + "\n}"
    found = bench.sanitize(text, values=VALUES, out=np.zeros(32, np.int32))
    assert {(one.kind, one.file, one.line) for one in found} == {(kind, FILE, 3)}
    assert message in found[0].message


def test_a_barrier_in_a_branch(bench):
    text = SIGNATURE + "if (threadIdx.x < 5)\n    __syncthreads();\nargs.out[threadIdx.x] = 1;\n}"
    (one,) = bench.sanitize(text, out=np.zeros(32, np.float32))
    assert (one.kind, one.file, one.line) == ("divergence", FILE, 4)


REVERSE = (
    SIGNATURE
    + """    __shared__ float row[64];
    row[threadIdx.x] = args.values[threadIdx.x];
    BARRIER;
    args.out[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}"""
)


@pytest.mark.parametrize(("block", "barrier"), [(64, "__syncthreads()"), (32, "__syncwarp()")])
def test_a_missing_barrier(bench, block, barrier):
    out = np.zeros(block, np.float32)
    whole = REVERSE.replace("BARRIER", barrier)
    assert not bench.sanitize(whole, block=block, values=VALUES, out=out)
    found = bench.sanitize(REVERSE.replace("BARRIER", ""), block=block, values=VALUES, out=out)
    assert of_kind(found, "order")
    assert of_kind(found, "order")[0].buffer == "out"


def test_a_missing_barrier_between_two_steps(bench):
    text = (
        SIGNATURE
        + """    __shared__ float row[256];
    const int i = threadIdx.x;
    row[i] = args.values[i];
    __syncthreads();
    for (int width = 128; width > 0; width /= 2) {
        if (i < width) row[i] += row[i + width];
        BARRIER;
    }
    if (i == 0) args.out[0] = row[0];
}"""
    )
    out = np.zeros(1, np.float32)
    whole = text.replace("BARRIER", "__syncthreads()")
    assert not bench.sanitize(whole, block=256, values=VALUES, out=out)
    found = bench.sanitize(text.replace("BARRIER", ""), block=256, values=VALUES, out=out)
    assert of_kind(found, "order")


def test_two_blocks_that_write_one_cell(bench):
    text = SIGNATURE + "if (threadIdx.x == 0)\n    args.out[0] = blockIdx.x;\n}"
    found = bench.sanitize(text, grid=4, out=np.zeros(1, np.float32))
    (one,) = of_kind(found, "order")
    assert one.buffer == "out"
    assert "1 of 1 elements depend on the order" in one.message


def test_an_output_that_is_not_written(bench):
    text = SIGNATURE + "if (threadIdx.x != 9) args.out[threadIdx.x] = 0;\n}"
    (one,) = bench.sanitize(text, out=np.zeros((4, 8), np.float32))
    assert (one.kind, one.buffer) == ("unwritten", "out")
    assert "1 of 32 elements are not written, the first is [1, 1]" in one.message
    clear = bench.sanitize(text, out=np.zeros((4, 8), np.float32), cleared=["out"])
    assert not clear


@pytest.mark.parametrize("memory", ["scratch", "shared"])
def test_a_read_of_what_was_not_written(bench, memory):
    array = "__shared__ float some[32];" if memory == "shared" else "float* some = args.scratch;"
    text = (
        SIGNATURE
        + array
        + "\nif (threadIdx.x != 3) some[threadIdx.x] = 1;\n__syncthreads();\n"
        + "args.out[threadIdx.x] = some[threadIdx.x] * 0.5f;\n}"
    )
    arrays = {"out": np.zeros(32, np.float32), "scratch": np.zeros(32, np.float32)}
    found = bench.sanitize(text, between=["scratch"], **arrays)
    read, *others = sorted(of_kind(found, "uninitialised"), key=lambda one: one.buffer != "out")
    assert read.buffer == "out"
    assert "the first is [3]" in read.message
    assert [(one.file, one.line) for one in others] == [(FILE, 6)]


def test_a_spinning_kernel_ends(bench):
    text = (
        SIGNATURE
        + "volatile int* flag = args.flag;\nif (blockIdx.x == 1) *flag = 1;\n"
        + "while (*flag == 0) {}\nargs.out[0] = 1;\n}"
    )
    found = bench.sanitize(
        text,
        grid=2,
        between=["flag"],
        cleared=["flag"],
        flag=np.zeros(1, np.int32),
        out=np.zeros(1, np.float32),
        timeout_s=3,
    )
    (one,) = of_kind(found, "hang")
    assert one.entry == "kernel"


def test_a_program_that_cannot_run_is_not_taken_for_a_clean_one(bench):
    text = SIGNATURE + "args.out[0] = 1;\n}"
    found = bench.sanitize(text, out=np.broadcast_to(np.float32(0), (1 << 45,)))
    assert [one.kind for one in found] == ["crash"]


def test_two_launches_that_pass_scratch_on(bench):
    text = """
    extern "C" __global__ void first(const Args args)
    {
        args.scratch[blockIdx.x * 32 + threadIdx.x] = args.values[threadIdx.x];
    }
    extern "C" __global__ void second(const Args args)
    {
        args.out[threadIdx.x] = args.scratch[threadIdx.x] + args.scratch[32 + threadIdx.x];
    }"""
    arrays = {"values": VALUES, "scratch": np.zeros(64, np.float32)}
    arrays["out"] = np.zeros(32, np.float32)
    unit = unit_of(text, arrays)
    both = [launch_of(unit, entry="first", grid=2), launch_of(unit, entry="second")]
    assert not bench.sanitize(text, launches=both, between=["scratch"], **arrays)
    found = bench.sanitize(text, launches=both[1:], between=["scratch"], **arrays)
    assert of_kind(found, "uninitialised")
