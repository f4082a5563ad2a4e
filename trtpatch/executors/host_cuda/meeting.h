// Who waits for whom, and what they learn from each other.
//
// A warp call waits until all lanes that its mask names are in the same call with the same mask;
// lanes that have returned are not waited for. A shuffle is stricter than CUDA, whose result is
// undefined there: a mask that names a returned lane, or a read from a lane that takes no part, is
// reported. A barrier that not all threads of the block reach, at one place, is reported.
#pragma once

#include <limits.h>

namespace on_host {

template <class Visit>
inline void each_lane(Warp& warp, unsigned lanes, Visit visit) {
    for (; lanes; lanes &= lanes - 1) visit(warp.threads[__builtin_ctz(lanes)]);
}

inline void exchange(Warp& warp, unsigned lanes) {
    each_lane(warp, lanes, [&](Thread& thread) {
        if (thread.mask & warp.returned)
            return note("mask", &thread,
                        "%s: mask 0x%08x names lanes 0x%08x, which have returned", thread.site.call,
                        thread.mask, thread.mask & warp.returned);
        if (!(lanes >> thread.source & 1))
            return note("mask", &thread,
                        "%s: lane %u reads lane %d, which takes no part (mask 0x%08x, %u threads)",
                        thread.site.call, thread.lane, thread.source, thread.mask, block.size);
        thread.result = warp.threads[thread.source].value;
    });
}

inline void match(Together what, Warp& warp, unsigned lanes) {
    each_lane(warp, lanes, [&](Thread& thread) {
        unsigned same = 0;
        each_lane(warp, lanes, [&](Thread& other) {
            same |= (unsigned)(other.value == thread.value) << other.lane;
        });
        thread.result = what == Together::match_any ? same : same == lanes ? thread.mask : 0;
    });
}

inline uint64_t combined(Together what, uint64_t total, const Thread& thread) {
    const uint64_t value = thread.value;
    switch (what) {
        case Together::ballot: return total | (uint64_t)(value != 0) << thread.lane;
        case Together::all: return total & (uint64_t)(value != 0);
        case Together::sum: return total + value;
        case Together::least_int: return (int)value < (int)total ? value : total;
        case Together::most_int: return (int)value > (int)total ? value : total;
        case Together::least_unsigned: return value < total ? value : total;
        case Together::most_unsigned: return value > total ? value : total;
        case Together::bits_and: return total & value;
        case Together::bits_or: return total | value;
        case Together::bits_xor: return total ^ value;
        default: return total;
    }
}

// Gives each lane the result of the call they are all in.
inline void combine(Together what, Warp& warp, unsigned lanes) {
    if (what == Together::sync) return watch_lanes(warp, lanes);
    if (what == Together::shuffle) return exchange(warp, lanes);
    if (what == Together::match_any || what == Together::match_all)
        return match(what, warp, lanes);
    const bool counts = what == Together::ballot || what == Together::sum;
    uint64_t total = warp.threads[__builtin_ctz(lanes)].value;
    if (what == Together::all) total = 1;
    if (counts || what == Together::bits_xor) total = 0;
    each_lane(warp, lanes, [&](Thread& thread) { total = combined(what, total, thread); });
    each_lane(warp, lanes, [&](Thread& thread) { thread.result = total; });
}

// Lets the threads go on that wait in one warp call, once all lanes of its mask are in it.
inline void resolve_warp(Warp& warp, unsigned mask) {
    const unsigned lanes = mask & warp.present & ~warp.returned;
    if (!lanes || (lanes & ~warp.waiting)) return;
    const Together what = warp.threads[__builtin_ctz(lanes)].what;
    bool agreed = true;
    each_lane(warp, lanes, [&](Thread& thread) {
        agreed = agreed && thread.mask == mask && thread.what == what;
    });
    if (!agreed) return;
    combine(what, warp, lanes);
    if (block.failed) return;
    warp.waiting &= ~lanes;
    each_lane(warp, lanes, [](Thread& thread) { thread.state = State::ready; });
    // Unseeded, go on with this warp while its stacks are in the processor's cache.
    if (!block.seed) block.cursor = (unsigned)(warp.threads - block.threads);
}

// Once a lane has returned, those that waited for it may go on.
inline void resolve_others(Warp& warp) {
    for (unsigned lane = 0; lane < kLanes && !block.failed; ++lane)
        if (warp.waiting >> lane & 1) resolve_warp(warp, warp.threads[lane].mask);
}

inline void resolve_barrier() {
    if (!block.at_barrier || block.at_barrier < block.alive) return;
    uint64_t count = 0;
    const Thread* first = nullptr;
    for (unsigned i = 0; i < block.size; ++i) {
        Thread& thread = block.threads[i];
        if (!first && thread.state == State::at_barrier) first = &thread;
        if (thread.state == State::returned || !(thread.site == first->site))
            return report_divergence();
        count += thread.value;
    }
    for (unsigned i = 0; i < block.size; ++i) {
        block.threads[i].result = count;
        block.threads[i].state = State::ready;
    }
    block.at_barrier = 0;
    watch_barrier();
}

// __activemask promises no more than the calling lane. Unseeded, lanes in the same call are
// together, and those ahead in the text wait for those behind; seeded, they are split at random.
inline void resolve_activemask() {
    for (unsigned w = 0; w * kLanes < block.size; ++w) {
        Warp& warp = block.warps[w];
        unsigned pending = 0, running = 0;
        int line = INT_MAX;
        for (unsigned rest = warp.present; rest; rest &= rest - 1) {
            const Thread& thread = warp.threads[__builtin_ctz(rest)];
            const bool ready = thread.state == State::fresh || thread.state == State::ready;
            if (ready) running |= 1u << thread.lane;
            if (thread.state != State::in_activemask) continue;
            pending |= 1u << thread.lane;
            if (thread.site.line < line) line = thread.site.line;
        }
        if (running) continue;
        const unsigned split = block.seed ? (unsigned)random_bits() : ~0u;
        unsigned let_go = 0;
        for (unsigned rest = pending; rest; rest &= rest - 1) {
            Thread& thread = warp.threads[__builtin_ctz(rest)];
            if (!block.seed && thread.site.line != line) continue;
            let_go |= 1u << thread.lane;
            unsigned together = 0;
            for (unsigned other = pending; other; other &= other - 1) {
                const unsigned lane = __builtin_ctz(other);
                if (warp.threads[lane].site == thread.site) together |= 1u << lane;
            }
            thread.result = together & ((split >> thread.lane & 1) ? split : ~split);
        }
        for (; let_go; let_go &= let_go - 1, --block.in_activemask)
            warp.threads[__builtin_ctz(let_go)].state = State::ready;
    }
}

inline Thread& arrive_at(Site site, State state, uint64_t value) {
    Thread& me = *block.current;
    me.site = site;
    me.state = state;
    me.value = value;
    return me;
}

unsigned meet_block(unsigned value, Site site) {
    Thread& me = arrive_at(site, State::at_barrier, value);
    ++block.at_barrier;
    resolve_barrier();
    wait();
    return (unsigned)me.result;
}

uint64_t meet_warp(Together what, unsigned mask, uint64_t value, Site site) {
    Thread& me = arrive_at(site, State::in_warp, value);
    const unsigned bit = 1u << me.lane;
    if (!(mask & bit))
        fail("mask", site, "%s: mask 0x%08x does not name the calling lane %u", site.call, mask,
             me.lane);
    me.mask = mask;
    me.what = what;
    me.warp->waiting |= bit;
    resolve_warp(*me.warp, mask);
    wait();
    return me.result;
}

// As the PTX manual defines `shfl` for segments of `width` lanes.
uint64_t shuffle(Shuffle how, unsigned mask, uint64_t bits, int by, int width, Site site) {
    if (width < 1 || width > 32 || (width & (width - 1)))
        fail("width", site, "%s: width %d is not a power of two from 1 to 32", site.call, width);
    const int lane = (int)block.current->lane, first = lane & ~(width - 1);
    int source = lane;
    switch (how) {
        case Shuffle::from: source = first | (by & (width - 1)); break;
        case Shuffle::up:
            source = (unsigned)by > (unsigned)(lane - first) ? lane : lane - by;
            break;
        case Shuffle::down:
            source = (unsigned)by >= (unsigned)(first + width - lane) ? lane : lane + by;
            break;
        case Shuffle::across:
            source = lane ^ (by & 31);
            if (source >= first + width) source = lane;
    }
    block.current->source = source;
    return meet_warp(Together::shuffle, mask, bits, site);
}

unsigned active_lanes(Site site) {
    Thread& me = arrive_at(site, State::in_activemask, 0);
    ++block.in_activemask;
    wait();
    return (unsigned)me.result;
}

}  // namespace on_host
