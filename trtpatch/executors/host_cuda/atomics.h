// atomicAdd and its family, for the types that CUDA has. One thread runs at a time: plain
// arithmetic is atomic here. A seed lets other threads in before.
#pragma once

namespace {

template <class T, class Operation>
inline T on_host_update(T* address, Operation operation) {
    on_host::maybe_yield();
#ifdef TRTPATCH_WATCH
    on_host::begin_atomic();
#endif
    const T old = *address;
    *address = operation(old);
#ifdef TRTPATCH_WATCH
    on_host::end_atomic();
#endif
    return old;
}

#define TRTPATCH_ATOMIC(name, T, expression)                                       \
    inline T name(T* address, T value) {                                           \
        return on_host_update(address, [=](T old) -> T { return expression; });   \
    }
#define TRTPATCH_INTEGERS(name, expression)           \
    TRTPATCH_ATOMIC(name, int, expression)            \
    TRTPATCH_ATOMIC(name, unsigned int, expression)   \
    TRTPATCH_ATOMIC(name, unsigned long long, expression)

// Sums wrap around, as on the device.
TRTPATCH_ATOMIC(atomicAdd, int, (int)((unsigned)old + (unsigned)value))
TRTPATCH_ATOMIC(atomicAdd, unsigned int, old + value)
TRTPATCH_ATOMIC(atomicAdd, unsigned long long, old + value)
TRTPATCH_ATOMIC(atomicAdd, float, old + value)
TRTPATCH_ATOMIC(atomicAdd, double, old + value)
TRTPATCH_ATOMIC(atomicSub, int, (int)((unsigned)old - (unsigned)value))
TRTPATCH_ATOMIC(atomicSub, unsigned int, old - value)
TRTPATCH_INTEGERS(atomicMin, value < old ? value : old)
TRTPATCH_ATOMIC(atomicMin, long long, value < old ? value : old)
TRTPATCH_INTEGERS(atomicMax, old < value ? value : old)
TRTPATCH_ATOMIC(atomicMax, long long, old < value ? value : old)
TRTPATCH_INTEGERS(atomicAnd, old & value)
TRTPATCH_INTEGERS(atomicOr, old | value)
TRTPATCH_INTEGERS(atomicXor, old ^ value)
TRTPATCH_INTEGERS(atomicExch, ((void)old, value))
TRTPATCH_ATOMIC(atomicExch, float, ((void)old, value))
TRTPATCH_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
TRTPATCH_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)
#undef TRTPATCH_INTEGERS
#undef TRTPATCH_ATOMIC

#define TRTPATCH_COMPARE(T)                                                              \
    inline T atomicCAS(T* address, T expected, T value) {                                \
        return on_host_update(address, [=](T old) { return old == expected ? value : old; }); \
    }
TRTPATCH_COMPARE(int)
TRTPATCH_COMPARE(unsigned int)
TRTPATCH_COMPARE(unsigned long long)
TRTPATCH_COMPARE(unsigned short)
#undef TRTPATCH_COMPARE

}  // namespace
