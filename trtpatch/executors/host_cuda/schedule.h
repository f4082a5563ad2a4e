// Who runs next.
//
// A thread runs on a fiber until it waits or returns; a fiber whose thread returned takes the next
// thread at once, so a kernel without barriers is a plain loop. With a seed, each pass takes the
// threads in a new order and leaves some warps out; without one, in the order of their indices.
#pragma once

#include <utility>

namespace on_host {

inline uint64_t random_bits() {  // splitmix64
    uint64_t z = block.random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

template <class T>
inline void shuffle_items(T* items, size_t count) {
    for (size_t i = count; i > 1; --i) std::swap(items[i - 1], items[random_bits() % i]);
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
    const unsigned index = block.fiber_count, group = index / kStacksAtOnce;
    if (index % kStacksAtOnce == 0 && !(block.stacks[group] = map_stacks())) {
        note("memory", nullptr, "no memory for the stacks of %u threads", block.size);
        return false;
    }
    thread.fiber = &block.fibers[block.fiber_count++];
    char* bottom = block.stacks[group] + index % kStacksAtOnce * kStackBytes;
    begin_stack(*thread.fiber, bottom, index, fiber_main);
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
        thread_index = next->index;
        if (next->fiber != &from) leave(from, *next->fiber);
    } else if (&from != &block.host) {
        leave(from, block.host);
    }
}

// Lets others run until somebody has made this thread ready.
inline void wait() { pass_on(*block.current->fiber); }

void yield() {
    block.current->state = State::ready;
    wait();
}

void maybe_yield() {
    static unsigned calls = 0;
    const bool now = block.seed ? random_bits() % 8 == 0 : ++calls % 4096 == 0;
    if (now) yield();
}

}  // namespace on_host
