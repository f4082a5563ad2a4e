// Who runs next, and who waits for whom.
//
// A thread runs on a fiber until it waits or returns; a fiber whose thread returned takes the next
// thread at once, so a kernel without barriers is a plain loop. With a seed, each pass takes the
// threads in a new order and leaves some warps out; without one, in the order of their indices.
#pragma once

namespace {
namespace on_host {

inline uint64_t random_bits() {  // splitmix64
    uint64_t z = block.random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

template <class T>
inline void shuffle(T* items, size_t count) {
    for (size_t i = count; i > 1; --i) std::swap(items[i - 1], items[random_bits() % i]);
}

// Lets the threads go on that wait in one warp call, once all lanes of its mask are in it.
inline void resolve_warp(Warp& warp, unsigned mask) {
    const unsigned lanes = mask & warp.present & ~warp.returned;
    if (!lanes || (lanes & ~warp.waiting)) return;
    const Combine combine = warp.threads[__builtin_ctz(lanes)].combine;
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        const Thread& thread = warp.threads[__builtin_ctz(rest)];
        if (thread.mask != mask || thread.combine != combine) return;
    }
    combine(warp, lanes);
    if (block.failed) return;
    warp.waiting &= ~lanes;
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        warp.threads[__builtin_ctz(rest)].state = State::ready;
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

// The next thread of this pass that can run; the cursor stays on it.
inline Thread* next_thread() {
    for (; block.cursor < block.size; ++block.cursor) {
        const unsigned index = block.order[block.cursor];
        Thread& thread = block.threads[index];
        if (block.left_out >> (index / kLanes) & 1) continue;
        if (thread.state == State::fresh || thread.state == State::ready) return &thread;
    }
    return nullptr;
}

void fiber_main();

// A fiber for a thread that has not begun.
inline bool give_fiber(Thread& thread) {
    if (block.idle_count) {
        thread.fiber = block.idle[--block.idle_count];
        return true;
    }
    thread.fiber = &block.fibers[block.fiber_count];
    if (!map_stack(*thread.fiber, block.fiber_count, fiber_main)) {
        note("memory", {"", 0, ""}, "no memory for the stack of one more thread");
        return false;
    }
    ++block.fiber_count;
    return true;
}

// Leaves `from` for the next thread of this pass, or for the host when there is none. Comes back
// when somebody switches to `from` again, or at once if the next thread is to run on it.
inline void pass_on(Stack& from) {
    Thread* next = block.failed ? nullptr : next_thread();
    if (next && (next->state == State::ready || give_fiber(*next))) {
        ++block.cursor;
        block.progress = true;
        block.current = next;
        on_host_thread_index = next->index;
        if (next->fiber != &from) switch_stack(from, *next->fiber);
    } else if (&from != &block.host) {
        switch_stack(from, block.host);
    }
}

inline void run_thread(Thread& thread) {
    block.kernel(block.args);
    thread.state = State::returned;
    --block.alive;
    Warp& warp = *thread.warp;
    warp.returned |= 1u << thread.lane;
    for (unsigned rest = warp.waiting; rest && !block.failed; rest &= rest - 1)
        if (warp.waiting & rest) resolve_warp(warp, warp.threads[__builtin_ctz(rest)].mask);
    resolve_barrier();
}

// What a fiber does: threads to their end, one after another.
void fiber_main() {
    arrive(block.host);
    for (;;) {
        Stack& fiber = *block.current->fiber;
        run_thread(*block.current);
        block.idle[block.idle_count++] = &fiber;
        pass_on(fiber);
    }
}

// Runs the block at blockIdx until all threads have returned or one has failed.
inline void run_block() {
    block.alive = block.size;
    block.at_barrier = block.in_activemask = 0;
    for (unsigned i = 0; i < block.size; ++i) block.threads[i].state = State::fresh;
    for (unsigned w = 0; w * kLanes < block.size; ++w)
        block.warps[w].waiting = block.warps[w].returned = 0;
    block.left_out = 0;
    while (block.alive && !block.failed) {
        block.progress = false;
        block.cursor = 0;
        if (block.seed) shuffle(block.order, block.size);
        pass_on(block.host);
        if (block.failed) return;
        if (block.in_activemask) resolve_activemask();
        if (!block.progress && !block.left_out) {
            // Threads may just have been let go by __activemask; otherwise nobody ever will be.
            block.cursor = 0;
            if (!next_thread()) return report_divergence();
        }
        const bool leave_out = block.seed && block.progress;
        block.left_out = leave_out ? (unsigned)(random_bits() & random_bits()) : 0;
    }
}

}  // namespace on_host
}  // namespace
