"""Shuffles, votes and reductions of warps on the CPU, against NumPy."""

import numpy as np
import pytest

SEEDS = [0, 1, 2, 3]


SHUFFLES = """
template <typename T> __device__ void all_shuffles(T* values, T* out, int by, int width)
{
    const int lane = threadIdx.x % 32;
    const T value = values[threadIdx.x];
    const unsigned all = 0xffffffffu;
    T* row = out + 4 * threadIdx.x;
    row[0] = __shfl_sync(all, value, by, width);
    row[1] = __shfl_up_sync(all, value, by, width);
    row[2] = __shfl_down_sync(all, value, by, width);
    row[3] = __shfl_xor_sync(all, value, by, width);
}
extern "C" __global__ void shuffles(const Args args)
{
    for (int by = 0; by < 32; ++by)
        for (int log = 0; log < 6; ++log)
            all_shuffles(args.values, args.out + 256 * (6 * by + log), by, 1 << log);
}
"""


def shuffled(values: np.ndarray, by: int, width: int) -> np.ndarray:
    """`[64]` values to `[64, 4]`, by the CUDA programming guide's words on each shuffle."""
    out = np.empty((64, 4), values.dtype)
    for thread in range(64):
        lane, warp = thread % 32, thread - thread % 32
        first = lane - lane % width
        up, down, across = lane - by, lane + by, lane ^ by
        sources = (
            first + by % width,
            up if up >= first else lane,
            down if down < first + width else lane,
            across if across < first + width else lane,
        )
        out[thread] = values[warp + np.array(sources)]
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "int64", "uint64"])
def test_shuffles_read_the_lanes_of_the_programming_guide(bench, dtype, seed):
    values = np.random.default_rng(1).integers(0, 2**30, 64).astype(dtype)
    out = np.zeros((32, 6, 64, 4), dtype)
    bench.run(SHUFFLES, block=64, seed=seed, values=values, out=out)
    for by in range(32):
        for log in range(6):
            np.testing.assert_array_equal(out[by, log], shuffled(values, by, 1 << log))


@pytest.mark.parametrize("seed", SEEDS)
def test_votes_and_reductions_of_a_whole_and_of_a_partial_warp(bench, seed):
    text = """
    extern "C" __global__ void votes(const Args args)
    {
        const unsigned all = 0xffffffffu;
        const int value = args.values[threadIdx.x];
        unsigned* row = args.out + 14 * threadIdx.x;
        row[0] = __ballot_sync(all, value > 0);
        row[1] = __any_sync(all, value > 40) != 0;
        row[2] = __all_sync(all, value > -20) != 0;
        row[3] = __match_any_sync(all, value / 8);
        row[4] = __reduce_add_sync(all, value);
        row[5] = __reduce_min_sync(all, value);
        row[6] = __reduce_max_sync(all, value);
        row[7] = __reduce_add_sync(all, (unsigned)value);
        row[8] = __reduce_max_sync(all, (unsigned)value);
        row[9] = __reduce_and_sync(all, (unsigned)value);
        row[10] = __reduce_or_sync(all, (unsigned)value);
        row[11] = __reduce_xor_sync(all, (unsigned)value);
        int same;
        row[12] = __match_all_sync(all, value, &same) + same;
        row[13] = __match_all_sync(all, 7, &same);
    }"""
    values = np.random.default_rng(3).integers(-20, 50, 45).astype(np.int32)
    out = np.zeros((45, 14), np.uint32)
    bench.run(text, block=45, seed=seed, values=values, out=out)
    for thread in range(45):
        warp = values[thread - thread % 32 :][:32]
        bits = (1 << np.arange(len(warp), dtype=np.uint64)).astype(np.uint64)
        octave = np.trunc(warp / 8)
        expected = [
            bits[warp > 0].sum(),
            (warp > 40).any(),
            (warp > -20).all(),
            bits[octave == octave[thread % 32]].sum(),
            *(np.uint32(getattr(warp, name)()) for name in ("sum", "min", "max")),
            warp.astype(np.uint32).sum(dtype=np.uint32),
            warp.astype(np.uint32).max(),
            *(op.reduce(warp.astype(np.uint32)) for op in
              (np.bitwise_and, np.bitwise_or, np.bitwise_xor)),
            0,
            0xFFFFFFFF,
        ]  # fmt: skip
        np.testing.assert_array_equal(out[thread], np.array(expected, np.uint64))


@pytest.mark.parametrize("seed", SEEDS)
def test_lanes_of_one_warp_may_wait_in_two_groups(bench, seed):
    text = """
    extern "C" __global__ void halves(const Args args)
    {
        const int lane = threadIdx.x;
        const unsigned mine = lane % 2 ? 0xaaaaaaaau : 0x55555555u;
        int value = lane;
        if (lane % 2)
            for (int by = 2; by < 32; by *= 2) value += __shfl_xor_sync(mine, value, by);
        else
            for (int by = 16; by > 1; by /= 2) value += __shfl_xor_sync(mine, value, by);
        __syncwarp();
        args.out[lane] = value;
    }"""
    out = np.zeros(32, np.int32)
    bench.run(text, seed=seed, out=out)
    assert out.tolist() == [240, 256] * 16


def test_activemask_names_those_who_came_together(bench):
    text = """
    extern "C" __global__ void masks(const Args args)
    {
        if (threadIdx.x % 3 == 0) args.out[threadIdx.x] = __activemask();
        else args.out[threadIdx.x] = 0;
        const unsigned mask = __activemask();
        if (!(mask >> threadIdx.x % 32 & 1)) __trap();
        if (__popc(mask) == 32) atomicAdd(args.whole, 1);
    }"""
    out, whole = np.zeros(32, np.uint32), np.zeros(1, np.int32)
    bench.run(text, out=out, whole=whole)
    assert set(out[::3].tolist()) == {sum(1 << lane for lane in range(0, 32, 3))}
    assert whole[0] == 32
    splits = set()
    for seed in range(1, 20):
        bench.run(text, seed=seed, out=out, whole=whole)
        splits |= set(out[::3].tolist())
    assert len(splits) > 1
