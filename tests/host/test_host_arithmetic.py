"""Types, mathematics and conversions on the CPU, against NumPy and the CUDA programming guide."""

import numpy as np
import pytest

# From the table "Alignment Requirements" of the CUDA C++ programming guide: size and alignment.
VECTORS = {
    "char1": (1, 1), "uchar1": (1, 1), "char2": (2, 2), "uchar2": (2, 2), "char3": (3, 1),
    "uchar3": (3, 1), "char4": (4, 4), "uchar4": (4, 4), "short1": (2, 2), "ushort1": (2, 2),
    "short2": (4, 4), "ushort2": (4, 4), "short3": (6, 2), "ushort3": (6, 2), "short4": (8, 8),
    "ushort4": (8, 8), "int1": (4, 4), "uint1": (4, 4), "int2": (8, 8), "uint2": (8, 8),
    "int3": (12, 4), "uint3": (12, 4), "int4": (16, 16), "uint4": (16, 16), "longlong1": (8, 8),
    "ulonglong1": (8, 8), "longlong2": (16, 16), "ulonglong2": (16, 16), "longlong3": (24, 8),
    "longlong4": (32, 16), "float1": (4, 4), "float2": (8, 8), "float3": (12, 4),
    "float4": (16, 16), "double1": (8, 8), "double2": (16, 16), "double3": (24, 8),
    "double4": (32, 16), "dim3": (12, 4),
}  # fmt: skip


def test_sizes_and_alignments_of_vectors(bench):
    rows = "\n".join(
        f"args.out[{2 * i}] = sizeof({name}); args.out[{2 * i + 1}] = alignof({name});"
        for i, name in enumerate(VECTORS)
    )
    text = f'extern "C" __global__ void sizes(const Args args) {{ {rows} }}'
    out = np.zeros((len(VECTORS), 2), np.int32)
    bench.run(text, block=1, out=out)
    assert {name: tuple(row) for name, row in zip(VECTORS, out.tolist(), strict=True)} == VECTORS


def test_vectors_are_built_and_loaded(bench):
    text = """
    struct __align__(8) Pair { float a; int b; };
    extern "C" __global__ void __launch_bounds__(64) vectors(const Args args)
    {
        const float4 four = __ldg(reinterpret_cast<const float4*>(args.values));
        const float2 two = make_float2(four.w, four.z);
        reinterpret_cast<float4*>(args.out)[0] = make_float4(two.x, two.y, four.y, four.x);
        const uchar4 bytes = make_uchar4(1, 2, 3, 255);
        Pair pair = {2.5f, bytes.w};
        reinterpret_cast<Pair*>(args.out + 4)[0] = pair;
        dim3 size(3);
        args.out[6] = size.x * 100 + size.y * 10 + size.z;
    }"""
    values, out = np.float32([1, 2, 3, 4]), np.zeros(8, np.float32)
    bench.run(text, block=1, values=values, out=out)
    assert out[:5].tolist() == [4, 3, 2, 1, 2.5]
    assert out[5:6].view(np.int32)[0] == 255
    assert out[6] == 311


def test_every_half_becomes_its_float(bench):
    text = """
    extern "C" __global__ void widen(const Args args)
    {
        const int at = blockIdx.x * blockDim.x + threadIdx.x;
        args.out[at] = trtpatch_half_to_float(args.halves[at].bits);
    }"""
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    out = np.zeros(65536, np.float32)
    bench.run(text, grid=64, block=1024, halves=halves, out=out)
    expected = halves.astype(np.float32)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(np.signbit(out), np.signbit(expected))


def test_floats_become_the_nearest_half(bench):
    text = """
    extern "C" __global__ void narrow(const Args args)
    {
        const int at = blockIdx.x * blockDim.x + threadIdx.x;
        if (at < args.count) args.out[at].bits = trtpatch_float_to_half(args.values[at]);
    }"""
    exact = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    exact = exact[np.isfinite(exact)]
    middles = (exact[:-1].astype(np.float64) + exact[1:]).astype(np.float32) / 2
    bits = np.random.default_rng(5).integers(0, 2**32, 200_000, dtype=np.uint32)
    values = np.concatenate([
        exact, middles, np.nextafter(middles, np.float32(np.inf)),
        np.nextafter(middles, -np.float32(np.inf)), bits.view(np.float32),
        np.float32([65519.99, 65520, 65504, 1e30, np.inf, -np.inf, np.nan, 0, -0.0, 1e-40]),
    ])  # fmt: skip
    out = np.zeros(len(values), np.float16)
    blocks = -(-len(values) // 256)
    bench.run(text, grid=blocks, block=256, values=values, out=out, count=len(values))
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(out, expected)
    number = ~np.isnan(values)
    np.testing.assert_array_equal(out.view(np.uint16)[number], expected.view(np.uint16)[number])


FLOATS = np.float32(
    [0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 2**23 + 1, 3e9, -3e9, 5e9, 1e19, -1e19, 2e19,
     np.inf, -np.inf, np.nan, 1e-40]
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "ctype", "dtype"),
    [("int", "int", "int32"), ("uint", "unsigned", "uint32"), ("ll", "long long", "int64"),
     ("ull", "unsigned long long", "uint64")],
)  # fmt: skip
def test_floats_become_integers_as_on_the_device(bench, kind, ctype, dtype):
    text = f"""
    extern "C" __global__ void convert(const Args args)
    {{
        const float x = args.values[threadIdx.x];
        {ctype}* row = args.out + 4 * threadIdx.x;
        row[0] = __float2{kind}_rn(x);
        row[1] = __float2{kind}_rz(x);
        row[2] = __float2{kind}_ru(x);
        row[3] = __float2{kind}_rd(x);
    }}"""
    out = np.zeros((len(FLOATS), 4), dtype)
    bench.run(text, block=len(FLOATS), values=FLOATS, out=out)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for x, row in zip(FLOATS, out.tolist(), strict=True):
        for rounding, found in zip((np.rint, np.trunc, np.ceil, np.floor), row, strict=True):
            rounded = rounding(np.float64(x))
            wanted = 0 if np.isnan(x) else low if x < low else high if x > high else int(rounded)
            assert found == min(max(wanted, low), high), (x, rounding)


def test_bits(bench):
    text = """
    extern "C" __global__ void bits(const Args args)
    {
        const unsigned long long x = args.values[threadIdx.x];
        const unsigned low = (unsigned)x, high = (unsigned)(x >> 32);
        unsigned* row = args.out + 10 * threadIdx.x;
        row[0] = __popc(low);
        row[1] = __popcll(x);
        row[2] = __clz(low);
        row[3] = __clzll(x);
        row[4] = __ffs(low);
        row[5] = __ffsll(x);
        row[6] = __brev(low);
        row[7] = __umulhi(low, high);
        row[8] = __mulhi((int)low, (int)high);
        row[9] = __byte_perm(low, high, 0x7041);
    }"""
    values = np.random.default_rng(6).integers(0, 2**64, 32, dtype=np.uint64)
    values[:4] = 0, 1, 2**63, 2**64 - 1
    values[4] = 2**31
    out = np.zeros((32, 10), np.uint32)
    bench.run(text, values=values, out=out)
    for x, row in zip(values.tolist(), out.tolist(), strict=True):
        low, high = x & 0xFFFFFFFF, x >> 32
        signed = [int(np.uint32(half).view(np.int32)) for half in (low, high)]
        data = x.to_bytes(8, "little")
        assert row == [
            low.bit_count(),
            x.bit_count(),
            32 - low.bit_length(),
            64 - x.bit_length(),
            (low & -low).bit_length(),
            (x & -x).bit_length(),
            int(f"{low:032b}"[::-1], 2),
            low * high >> 32,
            (signed[0] * signed[1] >> 32) & 0xFFFFFFFF,
            int.from_bytes([data[1], data[4], data[0], data[7]], "little"),
        ]


def test_mathematics(bench):
    text = """
    extern "C" __global__ void maths(const Args args)
    {
        const float x = args.values[threadIdx.x], y = x * 0.5f + 0.25f;
        float* row = args.out + 16 * threadIdx.x;
        int i = 0;
        row[i++] = __expf(x);
        row[i++] = __logf(y);
        row[i++] = rsqrtf(y);
        row[i++] = __frcp_rn(y);
        row[i++] = __fdividef(x, y);
        row[i++] = __fmaf_rn(x, y, -x * y);
        row[i++] = __fsqrt_rn(y);
        row[i++] = __saturatef(x - 1.0f);
        row[i++] = fminf(x, y) + fmaxf(x, 1.0f) + min(x, y) + max(x, NAN);
        row[i++] = rintf(x) + lrintf(x) + floorf(x) + ceilf(x) + truncf(x) + roundf(x);
        row[i++] = min(3, (int)x) + max(2u, (unsigned)x) + abs(-x) + abs((int)x - 4);
        row[i++] = sqrt(y) + exp(x) + fabs(-x) + floor(x) + pow(y, 2.0f);
        row[i++] = __int_as_float(__float_as_int(x)) + __uint_as_float(__float_as_uint(y));
        row[i++] = isnan(x) + isinf(x) + 2 * isfinite(x);
        row[i++] = __powf(y, x) + __sinf(x) + __cosf(x) + tanhf(x) + erff(x);
        row[i++] = __fadd_rn(__fmul_rn(x, y), __fsub_rn(x, y));
    }"""
    x = np.random.default_rng(7).uniform(0, 4, 64).astype(np.float32)
    out = np.zeros((64, 16), np.float32)
    bench.run(text, block=64, values=x, out=out)
    from scipy.special import erf

    y = x * np.float32(0.5) + np.float32(0.25)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    rounded = np.sign(x) * np.floor(np.abs(x) + 0.5)
    expected = [
        np.exp(x), np.log(y), 1 / np.sqrt(y), 1 / y, x / y, wide_x * wide_y - x * y, np.sqrt(y),
        np.clip(x - 1, 0, 1), np.minimum(x, y) * 2 + np.maximum(x, 1) + x,
        2 * np.rint(x) + np.floor(x) + np.ceil(x) + np.trunc(x) + rounded,
        np.minimum(3, x.astype(int)) + np.maximum(2, x.astype(int)) + x + np.abs(x.astype(int) - 4),
        np.sqrt(y) + np.exp(x) + x + np.floor(x) + y**2, x + y, np.full(64, 2),
        wide_y**wide_x + np.sin(x) + np.cos(x) + np.tanh(x) + erf(wide_x),
        x * y + (x - y),
    ]  # fmt: skip
    for column, wanted in enumerate(expected):
        np.testing.assert_allclose(out[:, column], wanted, rtol=2e-6, atol=1e-9, err_msg=column)


def test_a_product_and_a_sum_are_two_roundings(bench):
    text = """
    extern "C" __global__ void two(const Args args)
    {
        const int at = threadIdx.x;
        args.out[at] = args.a[at] * args.b[at] + args.c[at];
    }"""
    a, b = np.random.default_rng(8).uniform(1, 2, (2, 1024)).astype(np.float32)
    c, out = -(a * b), np.full(1024, 9, np.float32)
    bench.run(text, block=1024, a=a, b=b, c=c, out=out)
    assert not out.any()


def test_an_authors_names_do_not_meet_those_of_the_c_library(bench):
    text = """
    __device__ float4 max(float4 a, float4 b) { return {max(a.x, b.x), a.y, a.z, a.w}; }
    __device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y, a.z, a.w}; }
    __device__ __forceinline__ int index(int x) { return x * 2; }
    __device__ __noinline__ float y0(float x) { return x; }
    struct Sum { float total; __host__ __device__ void add(float x) { total += x; } };
    namespace time { constexpr int remove = 5; }
    extern "C" __global__ void names(const Args args)
    {
        Sum sum = {0};
        sum.add(y0(2.0f));
        args.out[0] = max(make_float4(1, 0, 0, 0), make_float4(3, 0, 0, 0)).x;
        args.out[1] = index(4) + max(1, 2) + sum.total + time::remove;
        args.out[2] = (make_float4(1, 0, 0, 0) + make_float4(3, 0, 0, 0)).x;
    }"""
    out = np.zeros(3, np.float32)
    bench.run(text, block=1, out=out)
    assert out.tolist() == [3, 17, 4]
