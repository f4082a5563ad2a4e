// CUDA's vector types, with CUDA's alignment: the sanitizer's alignment check knows it from here.
#pragma once

#define TRTPATCH_VECTOR(T, name, align2, align4)                                               \
    struct name##1 { T x; };                                                                   \
    struct alignas(align2) name##2 { T x, y; };                                                \
    struct name##3 { T x, y, z; };                                                             \
    struct alignas(align4) name##4 { T x, y, z, w; };                                          \
    inline name##1 make_##name##1(T x) { return {x}; }                                         \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                 \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                         \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

TRTPATCH_VECTOR(signed char, char, 2, 4)
TRTPATCH_VECTOR(unsigned char, uchar, 2, 4)
TRTPATCH_VECTOR(short, short, 4, 8)
TRTPATCH_VECTOR(unsigned short, ushort, 4, 8)
TRTPATCH_VECTOR(int, int, 8, 16)
TRTPATCH_VECTOR(unsigned int, uint, 8, 16)
TRTPATCH_VECTOR(long long, longlong, 16, 16)
TRTPATCH_VECTOR(unsigned long long, ulonglong, 16, 16)
TRTPATCH_VECTOR(float, float, 8, 16)
TRTPATCH_VECTOR(double, double, 16, 16)
#undef TRTPATCH_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 size) : x(size.x), y(size.y), z(size.z) {}
};
