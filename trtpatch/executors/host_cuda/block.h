// The threads of one block: who runs next, who waits for whom, and what is reported.
//
// A thread runs on a fiber until it waits or returns; a fiber whose thread returned takes the next
// thread at once, so a kernel without barriers is a plain loop. With a seed, each pass takes the
// threads in a new order and leaves some warps out; without one, in the order of their indices.
#pragma once

namespace {

uint3 on_host_thread_index;
uint3 on_host_block_index;
dim3 on_host_block_size;
dim3 on_host_grid_size;
const uint3& threadIdx = on_host_thread_index;
const uint3& blockIdx = on_host_block_index;
const dim3& blockDim = on_host_block_size;
const dim3& gridDim = on_host_grid_size;
constexpr int warpSize = 32;

namespace on_host {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kLanes = 32;

// Where in the author's text a thread waits, and in which call.
struct Site {
    const char* file;
    int line;
    const char* call;

    bool operator==(const Site& other) const {
        return line == other.line && same(call, other.call) && same(file, other.file);
    }
    static bool same(const char* a, const char* b) { return a == b || !strcmp(a, b); }
};

// What went wrong; filled once a launch. Python knows this layout.
struct Report {
    int line;
    char kind[28];
    char file[512];
    char message[1024];
};

enum class State : unsigned char { fresh, ready, at_barrier, in_warp, in_activemask, returned };

struct Warp;
using Combine = void (*)(Warp&, unsigned lanes);

struct Thread {
    State state;
    Stack* fiber;
    Warp* warp;
    uint3 index;
    Site site;  // of the call it waits in
    unsigned mask, lane;
    int source;          // the lane that a shuffle reads
    Combine combine;     // gives each lane its result; tells one warp call from another
    uint64_t value, result;
};

struct Warp {
    Thread* threads;
    unsigned present, waiting, returned;  // masks of lanes
};

struct Block {
    Thread threads[kMaxThreads];
    Warp warps[kMaxThreads / kLanes];
    unsigned order[kMaxThreads];
    unsigned size, cursor, alive, at_barrier, in_activemask;
    unsigned left_out;  // mask of warps that do not run in this pass
    bool progress;      // whether any thread ran in this pass
    bool failed;
    Thread* current;
    Stack host;
    Stack fibers[kMaxThreads];  // mapped when first needed, kept from launch to launch
    Stack* idle[kMaxThreads];
    unsigned fiber_count, idle_count;
    void (*kernel)(const void*);
    const void* args;
    Report* report;
    uint64_t seed, random_state;
};

Block block;

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

inline void record(const char* kind, Site site, const char* format, va_list values) {
    if (block.failed) return;
    block.failed = true;
    Report& report = *block.report;
    report.line = site.line;
    snprintf(report.kind, sizeof report.kind, "%s", kind);
    snprintf(report.file, sizeof report.file, "%s", site.file);
    vsnprintf(report.message, sizeof report.message, format, values);
}

__attribute__((format(printf, 3, 4))) inline void note(
    const char* kind, Site site, const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(kind, site, format, values);
    va_end(values);
}

// Ends the launch from within a thread.
[[noreturn]] __attribute__((format(printf, 3, 4))) inline void fail(
    const char* kind, Site site, const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(kind, site, format, values);
    va_end(values);
    switch_stack(*block.current->fiber, block.host);
    __builtin_unreachable();
}

// Says who waits where: "31 threads wait in __syncthreads (k.cu:10), 1 thread has returned".
inline void report_divergence() {
    char text[1024];
    int length = 0;
    unsigned counted = 0, returned = 0;
    const Thread* first = nullptr;
    auto add = [&](const char* format, auto... values) {
        const size_t room = length < (int)sizeof text ? sizeof text - length : 0;
        length += snprintf(text + (room ? length : 0), room, format, values...);
    };
    bool seen[kMaxThreads] = {};
    for (unsigned i = 0; i < block.size; ++i) {
        const Thread& thread = block.threads[i];
        returned += thread.state == State::returned;
        if (seen[i] || thread.state == State::returned) continue;
        if (!first) first = &thread;
        unsigned together = 0;
        for (unsigned j = i; j < block.size; ++j) {
            if (block.threads[j].state == State::returned || !(block.threads[j].site == thread.site))
                continue;
            seen[j] = true;
            ++together;
        }
        add("%s%u of %u threads wait in %s (%s:%d), the first is (%u, %u, %u)", counted++ ? "; " : "",
            together, block.size, thread.site.call, thread.site.file, thread.site.line,
            thread.index.x, thread.index.y, thread.index.z);
        if (thread.state == State::in_warp) add(" with mask 0x%08x", thread.mask);
    }
    if (returned) add("; %u returned", returned);
    if (first)
        note("divergence", first->site, "block (%u, %u, %u): %s", blockIdx.x, blockIdx.y, blockIdx.z,
             text);
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

// __activemask promises no more than the calling lane. Unseeded, the lanes that came together are
// together; seeded, they are split at random.
inline void resolve_activemask() {
    for (unsigned w = 0; w * kLanes < block.size; ++w) {
        Warp& warp = block.warps[w];
        unsigned pending = 0, running = 0;
        for (unsigned rest = warp.present; rest; rest &= rest - 1) {
            const unsigned lane = __builtin_ctz(rest);
            const State state = warp.threads[lane].state;
            if (state == State::in_activemask) pending |= 1u << lane;
            if (state == State::fresh || state == State::ready) running |= 1u << lane;
        }
        if (running) continue;
        const unsigned split = block.seed ? (unsigned)random_bits() : ~0u;
        for (unsigned rest = pending; rest; rest &= rest - 1) {
            Thread& thread = warp.threads[__builtin_ctz(rest)];
            unsigned together = 0;
            for (unsigned other = pending; other; other &= other - 1) {
                const unsigned lane = __builtin_ctz(other);
                if (warp.threads[lane].site == thread.site) together |= 1u << lane;
            }
            thread.result = together & ((split >> thread.lane & 1) ? split : ~split);
        }
        for (unsigned rest = pending; rest; rest &= rest - 1, --block.in_activemask)
            warp.threads[__builtin_ctz(rest)].state = State::ready;
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
