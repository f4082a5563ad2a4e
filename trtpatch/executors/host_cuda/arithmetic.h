// Mathematics, bits and conversions that CUDA declares without a header, beyond those of <math.h>.
//
// Approximate intrinsics (__expf, __fdividef) are computed exactly rounded or by the C library; a
// GPU differs from them in the last bits, which is what a contract's tolerance is for.
#pragma once

namespace {

#define TRTPATCH_CHOOSE(A, B, C)                              \
    inline constexpr C min(A a, B b) {                        \
        return (C)b < (C)a ? (C)b : (C)a;                     \
    }                                                         \
    inline constexpr C max(A a, B b) {                        \
        return (C)a < (C)b ? (C)b : (C)a;                     \
    }
TRTPATCH_CHOOSE(int, int, int)
TRTPATCH_CHOOSE(unsigned, unsigned, unsigned)
TRTPATCH_CHOOSE(int, unsigned, unsigned)
TRTPATCH_CHOOSE(unsigned, int, unsigned)
TRTPATCH_CHOOSE(long, long, long)
TRTPATCH_CHOOSE(unsigned long, unsigned long, unsigned long)
TRTPATCH_CHOOSE(long, unsigned long, unsigned long)
TRTPATCH_CHOOSE(unsigned long, long, unsigned long)
TRTPATCH_CHOOSE(long long, long long, long long)
TRTPATCH_CHOOSE(unsigned long long, unsigned long long, unsigned long long)
TRTPATCH_CHOOSE(long long, unsigned long long, unsigned long long)
TRTPATCH_CHOOSE(unsigned long long, long long, unsigned long long)
#undef TRTPATCH_CHOOSE

// Of a number and a NaN, the number.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

template <class To, class From>
inline To on_host_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To result;
    memcpy(&result, &value, sizeof result);
    return result;
}

inline int __float_as_int(float value) { return on_host_bits<int>(value); }
inline unsigned __float_as_uint(float value) { return on_host_bits<unsigned>(value); }
inline float __int_as_float(int bits) { return on_host_bits<float>(bits); }
inline float __uint_as_float(unsigned bits) { return on_host_bits<float>(bits); }
inline long long __double_as_longlong(double value) { return on_host_bits<long long>(value); }
inline double __longlong_as_double(long long bits) { return on_host_bits<double>(bits); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz((unsigned)bits) : 32; }
inline int __clzll(long long bits) { return bits ? __builtin_clzll((unsigned long long)bits) : 64; }

inline unsigned long long __brevll(unsigned long long bits) {
    unsigned long long result = 0;
    for (int i = 0; i < 64; ++i) result |= (bits >> i & 1) << (63 - i);
    return result;
}
inline unsigned __brev(unsigned bits) { return (unsigned)(__brevll(bits) >> 32); }

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> (4 * i) & 7;
        result |= (unsigned)(bytes >> (8 * pick) & 0xff) << (8 * i);
    }
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __saturatef(float x) { return x >= 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float fdividef(float a, float b) { return a / b; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* sine, float* cosine) { *sine = sinf(x), *cosine = cosf(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

// To an integer as the device does: the nearest that fits, and 0 for NaN.
template <class Integer>
inline Integer on_host_clamp(double x) {
    using Limits = std::numeric_limits<Integer>;
    if (x != x) return 0;
    if (x <= (double)Limits::min()) return Limits::min();
    if (x >= (double)Limits::max()) return Limits::max();
    return (Integer)x;
}

#define TRTPATCH_ROUND(from, From, to, To)                                                     \
    inline To __##from##2##to##_rn(From x) { return on_host_clamp<To>(rint((double)x)); }      \
    inline To __##from##2##to##_rz(From x) { return on_host_clamp<To>(trunc((double)x)); }     \
    inline To __##from##2##to##_ru(From x) { return on_host_clamp<To>(ceil((double)x)); }      \
    inline To __##from##2##to##_rd(From x) { return on_host_clamp<To>(floor((double)x)); }
TRTPATCH_ROUND(float, float, int, int)
TRTPATCH_ROUND(float, float, uint, unsigned)
TRTPATCH_ROUND(float, float, ll, long long)
TRTPATCH_ROUND(float, float, ull, unsigned long long)
TRTPATCH_ROUND(double, double, int, int)
TRTPATCH_ROUND(double, double, uint, unsigned)
TRTPATCH_ROUND(double, double, ll, long long)
TRTPATCH_ROUND(double, double, ull, unsigned long long)
#undef TRTPATCH_ROUND

inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __ll2float_rn(long long x) { return (float)x; }
inline float __ull2float_rn(unsigned long long x) { return (float)x; }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return (float)x; }

#define TRTPATCH_LOAD(name) \
    template <class T>      \
    inline T name(const T* address) { return *address; }
TRTPATCH_LOAD(__ldg)
TRTPATCH_LOAD(__ldca)
TRTPATCH_LOAD(__ldcg)
TRTPATCH_LOAD(__ldcs)
TRTPATCH_LOAD(__ldlu)
TRTPATCH_LOAD(__ldcv)
#undef TRTPATCH_LOAD

#define TRTPATCH_STORE(name) \
    template <class T>       \
    inline void name(T* address, T value) { *address = value; }
TRTPATCH_STORE(__stwb)
TRTPATCH_STORE(__stcg)
TRTPATCH_STORE(__stcs)
TRTPATCH_STORE(__stwt)
#undef TRTPATCH_STORE

// Every half is a float. A NaN keeps its sign and the top of its payload, and becomes quiet.
inline float trtpatch_half_to_float(unsigned short half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u;
    if (exponent == 31u)
        return __uint_as_float(sign | 0x7f800000u | (fraction ? fraction << 13 | 0x400000u : 0u));
    if (exponent) return __uint_as_float(sign | (exponent + 112u) << 23 | fraction << 13);
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even; too large becomes infinity.
inline unsigned short trtpatch_float_to_half(float value) {
    const uint32_t bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7e00u | (magnitude >> 13 & 511u));
    if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // 65520 and above
    if (magnitude < 0x38800000u)  // below the smallest normal half: count units of 2^-24
        return (unsigned short)(sign | (uint32_t)rintf(__uint_as_float(magnitude) * 0x1p24f));
    const uint32_t odd = magnitude >> 13 & 1u;
    return (unsigned short)(sign | (magnitude - 0x38000000u + 0xfffu + odd) >> 13);
}

}  // namespace
