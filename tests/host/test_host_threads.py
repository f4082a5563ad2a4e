"""Grids, blocks, shared memory, barriers and atomics on the CPU, against NumPy."""

import numpy as np
import pytest

SEEDS = [0, 1, 2, 3]


def test_indices_and_sizes(bench):
    text = """
    extern "C" __global__ void indices(const Args args)
    {
        const int x = blockIdx.x * blockDim.x + threadIdx.x;
        const int y = blockIdx.y * blockDim.y + threadIdx.y;
        const int z = blockIdx.z * blockDim.z + threadIdx.z;
        const int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
        args.out[(z * height + y) * width + x] = 10000 * z + 100 * y + x;
    }"""
    for seed in SEEDS:
        out = np.full((6, 8, 15), -1, np.int32)
        bench.run(text, grid=(5, 4, 2), block=(3, 2, 3), seed=seed, out=out)
        z, y, x = np.indices(out.shape)
        np.testing.assert_array_equal(out, 10000 * z + 100 * y + x)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("block", [1, 32, 33, 256, 1024])
def test_a_tree_reduction_in_static_shared_memory(bench, block, seed):
    text = """
    template <typename T> __device__ T block_sum(T value)
    {
        __shared__ T tile[1024];
        tile[threadIdx.x] = value;
        __syncthreads();
        for (int width = 1; width < blockDim.x; width *= 2) {
            const int at = 2 * width * threadIdx.x;
            if (at + width < blockDim.x) tile[at] += tile[at + width];
            __syncthreads();
        }
        return tile[0];
    }
    extern "C" __global__ void sum(const Args args)
    {
        const long long at = blockIdx.x * blockDim.x + threadIdx.x;
        const int total = block_sum(args.values[at]);
        const long long wide = block_sum((long long)args.values[at] << 32);
        if (threadIdx.x == 0) args.out[blockIdx.x] = total, args.wide[blockIdx.x] = wide;
    }"""
    values = np.random.default_rng(block).integers(-99, 99, (7, block), np.int32)
    out, wide = np.zeros(7, np.int32), np.zeros(7, np.int64)
    bench.run(text, grid=7, block=block, seed=seed, values=values, out=out, wide=wide)
    np.testing.assert_array_equal(out, values.sum(1))
    np.testing.assert_array_equal(wide, values.sum(1, dtype=np.int64) << 32)


@pytest.mark.parametrize(
    "declaration",
    [
        "extern __shared__ float row[];",
        "extern __shared__ __align__(16) float row[];",
        "extern\n__shared__\n  float   row [ ] ;",
        "extern __shared__ unsigned char bytes[]; float* row = reinterpret_cast<float*>(bytes);",
    ],
)
def test_dynamic_shared_memory(bench, declaration):
    text = f"""
    extern "C" __global__ void reverse(const Args args)
    {{
        {declaration}
        row[threadIdx.x] = args.values[threadIdx.x];
        __syncthreads();
        args.out[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
        args.line[0] = __LINE__;
    }}"""
    values, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    line = np.zeros(1, np.int32)
    bench.run(text, block=100, shared_bytes=400, values=values, out=out, line=line)
    np.testing.assert_array_equal(out, values[::-1])
    assert line[0] == text[: text.index("__LINE__")].count("\n") + 1


def test_dynamic_shared_memory_outside_of_the_kernel_is_the_same_memory(bench):
    text = """
    extern __shared__ float4 rows[];
    __device__ int numbers[3] = {1, 2, 3};
    __constant__ int more[3] = {10, 20, 30};
    extern "C" __global__ void both(const Args args)
    {
        extern __shared__ int words[];
        rows[threadIdx.x] = make_float4(0, 0, 0, 1.0f);
        __syncthreads();
        args.out[threadIdx.x] = __int_as_float(words[4 * threadIdx.x + 3]) * numbers[1] + more[2];
    }"""
    out = np.zeros(3, np.int32)
    bench.run(text, block=3, shared_bytes=48, out=out)
    assert out.tolist() == [32, 32, 32]


@pytest.mark.parametrize("seed", SEEDS)
def test_barriers_that_count(bench, seed):
    text = """
    extern "C" __global__ void votes(const Args args)
    {
        const int value = args.values[blockIdx.x * blockDim.x + threadIdx.x];
        int* out = args.out + 3 * (blockIdx.x * blockDim.x + threadIdx.x);
        out[0] = __syncthreads_count(value & 6);
        out[1] = __syncthreads_and(value & 6) != 0;
        out[2] = __syncthreads_or(value & 6) != 0;
    }"""
    values = np.int32([[0] * 50, [4] * 50, [0, 2] * 25])
    out = np.full((3, 50, 3), -1, np.int32)
    bench.run(text, grid=3, block=50, seed=seed, values=values, out=out)
    expected = np.int32([[0, 0, 0], [50, 1, 1], [25, 0, 1]])[:, None, :]
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics_give_the_same_in_any_order(bench, seed):
    text = """
    __device__ float atomic_max(float* address, float value)
    {
        int old = *(int*)address, seen;
        do {
            seen = old;
            if (__int_as_float(seen) >= value) break;
            old = atomicCAS((int*)address, seen, __float_as_int(value));
        } while (old != seen);
        return __int_as_float(old);
    }
    extern "C" __global__ void atomics(const Args args)
    {
        const int at = blockIdx.x * blockDim.x + threadIdx.x;
        const int value = args.values[at];
        args.places[at] = atomicAdd(&args.counts[value & 15], 1);
        atomicAdd(args.sums, 0.5f);
        atomic_max(args.sums + 1, value * 0.25f);
        atomicMin(args.ints, value);
        atomicMax(args.ints + 1, value);
        atomicOr(args.ints + 2, 1 << (value & 7));
        atomicXor(args.ints + 3, value);
        atomicSub(args.ints + 4, 2);
        atomicAnd(args.ints + 5, value | 0x100);
        atomicAdd(args.wide, 1ull << 33);
        atomicMax(args.wide + 1, (unsigned long long)value << 32);
        atomicInc(args.wraps, 9);
        atomicExch(args.wraps + 1, 7u);
    }"""
    values = np.random.default_rng(4).integers(0, 500, 600).astype(np.int32)
    places, counts = np.zeros(600, np.int32), np.zeros(16, np.int32)
    ints = np.int32([10**6, -1, 0, 0, 0, -1])
    sums, wide, wraps = np.zeros(2, np.float32), np.zeros(2, np.uint64), np.zeros(2, np.uint32)
    bench.run(text, grid=6, block=100, seed=seed, values=values, places=places, counts=counts,
              ints=ints, sums=sums, wide=wide, wraps=wraps)  # fmt: skip
    np.testing.assert_array_equal(counts, np.bincount(values & 15, minlength=16))
    for key in range(16):
        taken = places[(values & 15) == key]
        np.testing.assert_array_equal(np.sort(taken), np.arange(len(taken)))
    assert sums.tolist() == [300.0, values.max() * 0.25]
    assert ints.tolist() == [
        values.min(),
        values.max(),
        np.bitwise_or.reduce(1 << (values & 7)),
        np.bitwise_xor.reduce(values),
        -1200,
        np.bitwise_and.reduce(values | 0x100),
    ]
    assert wide.tolist() == [600 << 33, int(values.max()) << 32]
    assert wraps.tolist() == [600 % 10, 7]


def test_a_seed_changes_the_order_and_repeats_itself(bench):
    text = """
    extern "C" __global__ void order(const Args args)
    {
        args.out[atomicAdd(args.next, 1)] = blockIdx.x * blockDim.x + threadIdx.x;
    }"""
    orders = []
    for seed in (0, 1, 2, 1):
        out = np.zeros(192, np.int32)
        bench.run(text, grid=3, block=64, seed=seed, out=out, next=np.zeros(1, np.int32))
        np.testing.assert_array_equal(np.sort(out), np.arange(192))
        orders.append(out.tolist())
    assert orders[0] == list(range(192))
    assert orders[1] == orders[3] != orders[2]


def test_what_shared_memory_held_before_is_lost(bench):
    text = """
    extern "C" __global__ void stale(const Args args)
    {
        __shared__ int kept[2];
        extern __shared__ int dynamic[];
        if (threadIdx.x == 0) args.out[blockIdx.x] = kept[0] == dynamic[0];
        if (threadIdx.x == 0) args.out[blockIdx.x + 2] = kept[0];
        kept[0] = 5;
        dynamic[0] = 6;
    }"""
    out = np.zeros(4, np.int32)
    bench.run(text, grid=2, shared_bytes=4, out=out)
    assert out.tolist() == [1, 1, 0x7F7F7F7F, 0x7F7F7F7F]
