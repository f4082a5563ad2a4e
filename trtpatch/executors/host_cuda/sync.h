// Barriers of a block, and what the lanes of a warp do together; meeting.h has the rules.
#pragma once

#define TRTPATCH_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace {

const uint3& threadIdx = on_host::thread_index;
const uint3& blockIdx = on_host::block_index;
const dim3& blockDim = on_host::block_size;
const dim3& gridDim = on_host::grid_size;
constexpr int warpSize = 32;

inline void __syncthreads(TRTPATCH_SITE) { on_host::meet_block(0, {file, line, "__syncthreads"}); }

inline int __syncthreads_count(int predicate, TRTPATCH_SITE) {
    return (int)on_host::meet_block(predicate != 0, {file, line, "__syncthreads_count"});
}

inline int __syncthreads_and(int predicate, TRTPATCH_SITE) {
    return on_host::meet_block(predicate == 0, {file, line, "__syncthreads_and"}) == 0;
}

inline int __syncthreads_or(int predicate, TRTPATCH_SITE) {
    return on_host::meet_block(predicate != 0, {file, line, "__syncthreads_or"}) != 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, TRTPATCH_SITE) {
    on_host::meet_warp(on_host::Together::sync, mask, 0, {file, line, "__syncwarp"});
}

inline unsigned __activemask(TRTPATCH_SITE) {
    return on_host::active_lanes({file, line, "__activemask"});
}

template <class T>
inline uint64_t on_host_exchanged(T value) {
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                  "warp calls exchange numbers of 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

#define TRTPATCH_SHUFFLE(name, how, By)                                                         \
    template <class T>                                                                          \
    inline T name(unsigned mask, T value, By by, int width = 32, TRTPATCH_SITE) {               \
        const uint64_t bits = on_host::shuffle(on_host::Shuffle::how, mask,                     \
                                               on_host_exchanged(value), (int)by, width,        \
                                               {file, line, #name});                            \
        memcpy(&value, &bits, sizeof value);                                                    \
        return value;                                                                           \
    }
TRTPATCH_SHUFFLE(__shfl_sync, from, int)
TRTPATCH_SHUFFLE(__shfl_up_sync, up, unsigned)
TRTPATCH_SHUFFLE(__shfl_down_sync, down, unsigned)
TRTPATCH_SHUFFLE(__shfl_xor_sync, across, int)
#undef TRTPATCH_SHUFFLE

inline unsigned __ballot_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return (unsigned)on_host::meet_warp(on_host::Together::ballot, mask, predicate != 0,
                                        {file, line, "__ballot_sync"});
}

inline int __any_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return on_host::meet_warp(on_host::Together::ballot, mask, predicate != 0,
                              {file, line, "__any_sync"}) != 0;
}

inline int __all_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return (int)on_host::meet_warp(on_host::Together::all, mask, predicate != 0,
                                   {file, line, "__all_sync"});
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, TRTPATCH_SITE) {
    return (unsigned)on_host::meet_warp(on_host::Together::match_any, mask,
                                        on_host_exchanged(value), {file, line, "__match_any_sync"});
}

template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, TRTPATCH_SITE) {
    const unsigned same = (unsigned)on_host::meet_warp(on_host::Together::match_all, mask,
                                                       on_host_exchanged(value),
                                                       {file, line, "__match_all_sync"});
    *all = same != 0;
    return same;
}

#define TRTPATCH_REDUCE(name, T, what)                                                          \
    inline T name(unsigned mask, T value, TRTPATCH_SITE) {                                      \
        return (T)on_host::meet_warp(on_host::Together::what, mask, (unsigned)value,            \
                                     {file, line, #name});                                      \
    }
TRTPATCH_REDUCE(__reduce_add_sync, unsigned, sum)
TRTPATCH_REDUCE(__reduce_min_sync, unsigned, least_unsigned)
TRTPATCH_REDUCE(__reduce_max_sync, unsigned, most_unsigned)
TRTPATCH_REDUCE(__reduce_add_sync, int, sum)
TRTPATCH_REDUCE(__reduce_min_sync, int, least_int)
TRTPATCH_REDUCE(__reduce_max_sync, int, most_int)
TRTPATCH_REDUCE(__reduce_and_sync, unsigned, bits_and)
TRTPATCH_REDUCE(__reduce_or_sync, unsigned, bits_or)
TRTPATCH_REDUCE(__reduce_xor_sync, unsigned, bits_xor)
#undef TRTPATCH_REDUCE

// One thread runs at a time, so every write is seen at once; only watch.h wants to know.
inline void __threadfence() { on_host::fence(); }
inline void __threadfence_block() { on_host::fence(); }
inline void __threadfence_system() { on_host::fence(); }

inline void __nanosleep(unsigned) { on_host::yield(); }

[[noreturn]] inline void __trap(TRTPATCH_SITE) {
    on_host::fail("trap", {file, line, "__trap"}, "the kernel stopped itself");
}

}  // namespace
