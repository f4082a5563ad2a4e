// Barriers of a block, and what the lanes of a warp do together.
//
// A call waits until all lanes that its mask names are in the same call with the same mask; lanes
// that have returned are not waited for. A shuffle is stricter than CUDA, whose result is undefined
// there: a mask that names a returned lane, or a read from a lane that takes no part, is reported.
#pragma once

#define TRTPATCH_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace {
namespace on_host {

// Lets others run until somebody has made this thread ready.
inline void wait() { pass_on(*block.current->fiber); }

// Lets other threads run first, now and then, so that a seed tries other interleavings.
inline void maybe_yield() {
    static unsigned calls = 0;
    if (block.seed ? (random_bits() & 7) != 0 : ++calls % 4096 != 0) return;
    block.current->state = State::ready;
    wait();
}

inline unsigned meet_block(unsigned value, Site site) {
    Thread& me = *block.current;
    me.site = site;
    me.value = value;
    me.state = State::at_barrier;
    ++block.at_barrier;
    resolve_barrier();
    wait();
    return static_cast<unsigned>(me.result);
}

inline uint64_t meet_warp(unsigned mask, uint64_t value, int source, Combine combine, Site site) {
    Thread& me = *block.current;
    const unsigned bit = 1u << me.lane;
    if (!(mask & bit))
        fail("mask", site, "%s: mask 0x%08x does not name the calling lane %u", site.call, mask,
             me.lane);
    me.site = site;
    me.mask = mask;
    me.value = value;
    me.source = source;
    me.combine = combine;
    me.state = State::in_warp;
    me.warp->waiting |= bit;
    resolve_warp(*me.warp, mask);
    wait();
    return me.result;
}

template <class Visit>
inline void each_lane(Warp& warp, unsigned lanes, Visit visit) {
    for (; lanes; lanes &= lanes - 1) visit(warp.threads[__builtin_ctz(lanes)]);
}

inline void combine_nothing(Warp&, unsigned) {}

inline void combine_shuffle(Warp& warp, unsigned lanes) {
    each_lane(warp, lanes, [&](Thread& thread) {
        if (thread.mask & warp.returned)
            return note("mask", thread.site, "%s: mask 0x%08x names lanes 0x%08x, which have returned",
                        thread.site.call, thread.mask, thread.mask & warp.returned);
        if (!(lanes >> thread.source & 1))
            return note("mask", thread.site,
                        "%s: lane %u reads lane %d, which takes no part (mask 0x%08x, %u threads)",
                        thread.site.call, thread.lane, thread.source, thread.mask, block.size);
        thread.result = warp.threads[thread.source].value;
    });
}

inline void combine_ballot(Warp& warp, unsigned lanes) {
    unsigned votes = 0;
    each_lane(warp, lanes, [&](Thread& thread) { votes |= (thread.value != 0) << thread.lane; });
    each_lane(warp, lanes, [&](Thread& thread) { thread.result = votes; });
}

inline void combine_all(Warp& warp, unsigned lanes) {
    bool all = true;
    each_lane(warp, lanes, [&](Thread& thread) { all &= thread.value != 0; });
    each_lane(warp, lanes, [&](Thread& thread) { thread.result = all; });
}

inline void combine_match(Warp& warp, unsigned lanes) {
    each_lane(warp, lanes, [&](Thread& thread) {
        thread.result = 0;
        each_lane(warp, lanes, [&](Thread& other) {
            thread.result |= (unsigned)(other.value == thread.value) << other.lane;
        });
    });
}

template <class T, class Operation>
void combine_reduce(Warp& warp, unsigned lanes) {
    T total = static_cast<T>(warp.threads[__builtin_ctz(lanes)].value);
    each_lane(warp, lanes & (lanes - 1),
              [&](Thread& other) { total = Operation()(total, static_cast<T>(other.value)); });
    each_lane(warp, lanes, [&](Thread& thread) { thread.result = total; });
}

template <class T>
inline uint64_t to_bits(T value) {
    static_assert(std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8),
                  "warp calls exchange numbers of 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
inline T shuffle_value(unsigned mask, T value, int source, Site site) {
    const uint64_t bits = meet_warp(mask, to_bits(value), source, combine_shuffle, site);
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Checks a shuffle's width; gives the first lane of the caller's segment.
inline int segment(int width, Site site) {
    if (width < 1 || width > 32 || (width & (width - 1)))
        fail("width", site, "%s: width %d is not a power of two from 1 to 32", site.call, width);
    return static_cast<int>(block.current->lane) & ~(width - 1);
}

struct Add { template <class T> T operator()(T a, T b) { return a + b; } };
struct Min { template <class T> T operator()(T a, T b) { return b < a ? b : a; } };
struct Max { template <class T> T operator()(T a, T b) { return a < b ? b : a; } };
struct And { template <class T> T operator()(T a, T b) { return a & b; } };
struct Or { template <class T> T operator()(T a, T b) { return a | b; } };
struct Xor { template <class T> T operator()(T a, T b) { return a ^ b; } };

}  // namespace on_host

inline void __syncthreads(TRTPATCH_SITE) { on_host::meet_block(0, {file, line, "__syncthreads"}); }

inline int __syncthreads_count(int predicate, TRTPATCH_SITE) {
    return (int)on_host::meet_block(predicate != 0, {file, line, "__syncthreads_count"});
}

inline int __syncthreads_and(int predicate, TRTPATCH_SITE) {
    const unsigned no = on_host::meet_block(predicate == 0, {file, line, "__syncthreads_and"});
    return no == 0;
}

inline int __syncthreads_or(int predicate, TRTPATCH_SITE) {
    return on_host::meet_block(predicate != 0, {file, line, "__syncthreads_or"}) != 0;
}

inline void __syncwarp(unsigned mask = 0xffffffffu, TRTPATCH_SITE) {
    on_host::meet_warp(mask, 0, 0, on_host::combine_nothing, {file, line, "__syncwarp"});
}

inline unsigned __activemask(TRTPATCH_SITE) {
    on_host::Thread& me = *on_host::block.current;
    me.site = {file, line, "__activemask"};
    me.state = on_host::State::in_activemask;
    ++on_host::block.in_activemask;
    on_host::wait();
    return static_cast<unsigned>(me.result);
}

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, TRTPATCH_SITE) {
    const on_host::Site site = {file, line, "__shfl_sync"};
    const int first = on_host::segment(width, site);
    return on_host::shuffle_value(mask, value, first | (lane & (width - 1)), site);
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, TRTPATCH_SITE) {
    const on_host::Site site = {file, line, "__shfl_up_sync"};
    const int first = on_host::segment(width, site), me = (int)on_host::block.current->lane;
    const int source = delta > (unsigned)(me - first) ? me : me - (int)delta;
    return on_host::shuffle_value(mask, value, source, site);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, TRTPATCH_SITE) {
    const on_host::Site site = {file, line, "__shfl_down_sync"};
    const int first = on_host::segment(width, site), me = (int)on_host::block.current->lane;
    const int source = delta >= (unsigned)(first + width - me) ? me : me + (int)delta;
    return on_host::shuffle_value(mask, value, source, site);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, TRTPATCH_SITE) {
    const on_host::Site site = {file, line, "__shfl_xor_sync"};
    const int first = on_host::segment(width, site), me = (int)on_host::block.current->lane;
    const int source = me ^ (bits & 31);
    return on_host::shuffle_value(mask, value, source >= first + width ? me : source, site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return (unsigned)on_host::meet_warp(mask, predicate != 0, 0, on_host::combine_ballot,
                                        {file, line, "__ballot_sync"});
}

inline int __any_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return on_host::meet_warp(mask, predicate != 0, 0, on_host::combine_ballot,
                              {file, line, "__any_sync"}) != 0;
}

inline int __all_sync(unsigned mask, int predicate, TRTPATCH_SITE) {
    return (int)on_host::meet_warp(mask, predicate != 0, 0, on_host::combine_all,
                                   {file, line, "__all_sync"});
}

template <class T>
inline unsigned __match_any_sync(unsigned mask, T value, TRTPATCH_SITE) {
    return (unsigned)on_host::meet_warp(mask, on_host::to_bits(value), 0, on_host::combine_match,
                                        {file, line, "__match_any_sync"});
}

template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all, TRTPATCH_SITE) {
    const unsigned same = (unsigned)on_host::meet_warp(
        mask, on_host::to_bits(value), 0, on_host::combine_match, {file, line, "__match_all_sync"});
    *all = same == (mask & on_host::block.current->warp->present);
    return *all ? mask : 0;
}

#define TRTPATCH_REDUCE(name, T, Operation)                                                       \
    inline T name(unsigned mask, T value, TRTPATCH_SITE) {                                        \
        return (T)on_host::meet_warp(mask, on_host::to_bits(value), 0,                            \
                                     on_host::combine_reduce<T, on_host::Operation>,              \
                                     {file, line, #name});                                        \
    }
TRTPATCH_REDUCE(__reduce_add_sync, unsigned, Add)
TRTPATCH_REDUCE(__reduce_min_sync, unsigned, Min)
TRTPATCH_REDUCE(__reduce_max_sync, unsigned, Max)
TRTPATCH_REDUCE(__reduce_add_sync, int, Add)
TRTPATCH_REDUCE(__reduce_min_sync, int, Min)
TRTPATCH_REDUCE(__reduce_max_sync, int, Max)
TRTPATCH_REDUCE(__reduce_and_sync, unsigned, And)
TRTPATCH_REDUCE(__reduce_or_sync, unsigned, Or)
TRTPATCH_REDUCE(__reduce_xor_sync, unsigned, Xor)
#undef TRTPATCH_REDUCE

// One thread runs at a time, so every write is seen at once.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

inline void __nanosleep(unsigned) {
    on_host::block.current->state = on_host::State::ready;
    on_host::wait();
}

[[noreturn]] inline void __trap(TRTPATCH_SITE) {
    on_host::fail("trap", {file, line, "__trap"}, "the kernel stopped itself");
}

}  // namespace
