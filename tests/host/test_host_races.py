"""Races and reads of what was not written are found with the lines of both sides; order is not."""

import numpy as np
import pytest

from tests.host_units import FILE, needs_gcc

SIGNATURE = 'extern "C" __global__ void kernel(const Args args)\n{\n'


def found(bench, body, kind, *, helpers="", **options):
    options.setdefault("out", np.zeros(32, np.float32))
    text = helpers + SIGNATURE + body + "\n}"
    return [one for one in bench.sanitize(text, **options) if one.kind == kind]


def test_a_missing_syncthreads_has_both_lines(bench):
    body = """__shared__ float row[64];
row[threadIdx.x] = threadIdx.x;
args.out[threadIdx.x] = row[63 - threadIdx.x];"""
    races = found(bench, body, "race", block=64, out=np.zeros(64, np.float32))
    assert {(one.file, one.line) for one in races} == {(FILE, 4), (FILE, 5)}
    assert {one.buffer for one in races} == {"shared memory"}
    writer = next(one for one in races if one.line == 4)
    assert "writes a cell, which thread (31, 0, 0) of block (0, 0, 0) read at" in writer.message
    assert f"{FILE}:5 with no barrier between" in writer.message
    assert not found(bench, body.replace("x;\nargs", "x;\n__syncthreads();\nargs"), "race",
                     block=64, out=np.zeros(64, np.float32))  # fmt: skip


@pytest.mark.parametrize(
    ("between", "races"),
    [("", True), ("__ballot_sync(0xffffffffu, 1);", True), ("__syncwarp();", False),
     ("__syncwarp(threadIdx.x & 1 ? 0xaaaaaaaau : 0x55555555u);", True)],
)  # fmt: skip
def test_only_syncwarp_orders_the_memory_of_a_warp(bench, between, races):
    body = f"""extern __shared__ float row[];
row[threadIdx.x] = threadIdx.x;
{between}
args.out[threadIdx.x] = row[31 - threadIdx.x];"""
    assert bool(found(bench, body, "race", shared_bytes=128)) == races


def test_a_syncwarp_of_one_warp_does_not_order_another(bench):
    body = """__shared__ float row[64];
row[threadIdx.x] = threadIdx.x;
__syncwarp();
args.out[threadIdx.x] = row[63 - threadIdx.x];"""
    assert found(bench, body, "race", block=64, out=np.zeros(64, np.float32))


def test_two_blocks_that_write_one_cell(bench):
    body = "if (threadIdx.x == 3)\n    args.out[0] = blockIdx.x;"
    (race,) = found(bench, body, "race", grid=(2, 2), out=np.zeros(1, np.float32))
    assert (race.file, race.line, race.buffer, race.entry) == (FILE, 4, "out", "kernel")
    assert "thread (3, 0, 0) of block (1, 0, 0) writes element 0 of float32 [1]" in race.message
    assert f"which thread (3, 0, 0) of block (0, 0, 0) wrote at {FILE}:4" in race.message


def test_a_count_that_is_not_atomic_though_its_result_never_differs(bench):
    options = {"grid": 4, "cleared": ["out"], "out": np.zeros(1, np.int32)}
    assert not found(bench, "args.out[0] += 1;", "order", **options)
    assert found(bench, "args.out[0] += 1;", "race", **options)
    assert not found(bench, "atomicAdd(args.out, 1);", "race", **options)
    body = "if (args.out[0] < 9) atomicAdd(args.out, 1);"
    assert found(bench, body, "race", **options)


def test_what_is_no_race(bench):
    same = "args.out[0] = 5;"
    assert not found(bench, same, "race", grid=4, out=np.zeros(1, np.float32))
    neighbours = "args.out[threadIdx.x] = threadIdx.x;"
    assert not found(bench, neighbours, "race", out=np.zeros(32, np.uint8))
    volatiles = "((volatile int*)args.out)[0] = blockIdx.x;"
    assert not found(bench, volatiles, "race", grid=3, out=np.zeros(1, np.int32))


LAST_BLOCK = """__shared__ bool last;
args.parts[blockIdx.x * 32 + threadIdx.x] = threadIdx.x; // part
FENCE
__syncthreads();
if (threadIdx.x == 0) last = atomicAdd(args.done, 1) == gridDim.x - 1;
__syncthreads();
if (!last) return;
float sum = 0;
for (int b = 0; b < gridDim.x; ++b)
    sum += args.parts[b * 32 + threadIdx.x]; // sum
args.out[threadIdx.x] = sum;"""


def test_the_last_block_may_read_what_others_fenced(bench):
    options = {
        "grid": 3,
        "between": ["parts", "done"],
        "cleared": ["done"],
        "parts": np.zeros(96, np.float32),
        "done": np.zeros(1, np.int32),
    }
    assert not found(bench, LAST_BLOCK.replace("FENCE", "__threadfence();"), "race", **options)
    (race,) = found(bench, LAST_BLOCK.replace("FENCE", ""), "race", **options)
    text = SIGNATURE + LAST_BLOCK
    assert race.buffer == "parts"
    assert race.line == text[: text.index("// sum")].count("\n") + 1
    assert f"{FILE}:{text[: text.index('// part')].count(chr(10)) + 1}" in race.message


def test_a_read_of_what_nobody_has_written(bench):
    needs_gcc("clang leaves out a read before a write of the same place")
    body = """__shared__ int counts[8];
atomicAdd(&counts[threadIdx.x % 8], 1);
__syncthreads();
args.out[threadIdx.x] = counts[threadIdx.x % 8] + args.some[threadIdx.x];"""
    options = {"between": ["some"], "some": np.zeros(32, np.float32), "shuffles": 0}
    places = {(one.line, one.buffer) for one in found(bench, body, "uninitialised", **options)}
    assert (6, "some") in places
    assert any(buffer == "shared memory" for _, buffer in places)


def test_structs_with_padding_and_wide_loads_are_read_whole(bench):
    helpers = """struct Padded { double a; int b; float c[5]; };
__device__ __noinline__ Padded make(int x) { return {x * 0.5, x, {1.0f, 2.0f}}; }
"""
    body = """__shared__ Padded all[32];
__shared__ float4 wide[32];
all[threadIdx.x] = make(threadIdx.x);
wide[threadIdx.x].x = threadIdx.x;
__syncthreads();
const Padded other = all[31 - threadIdx.x];
const float4 four = wide[31 - threadIdx.x];
args.out[threadIdx.x] = other.b + four.x;"""
    assert not bench.sanitize(helpers + SIGNATURE + body + "\n}", out=np.zeros(32, np.float32))


def test_the_place_is_in_the_entrys_file(bench):
    helpers = '#line 9 "patches/common.cuh"\n__device__ void put(float* p, float x) { *p = x; }\n'
    helpers += f'#line 1 "{FILE}"\n'
    (race,) = found(bench, "put(args.out, blockIdx.x);", "race", helpers=helpers, grid=2,
                    out=np.zeros(1, np.float32))  # fmt: skip
    assert (race.file, race.line) == (FILE, 3)
    assert "by way of patches/common.cuh:9" in race.message
