// The threads of one block: what is known of each, and what is reported when one goes wrong.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The linker's names for where the static shared arrays of all kernels of the unit lie.
extern "C" {
extern unsigned char __start_trtpatch_shared[] __attribute__((visibility("hidden")));
extern unsigned char __stop_trtpatch_shared[] __attribute__((visibility("hidden")));
}

namespace on_host {

uint3 thread_index, block_index;
dim3 block_size, grid_size;
alignas(1024) unsigned char dynamic_shared_bytes[kMaxSharedBytes];

// So that the section exists in every unit.
__attribute__((used, section("trtpatch_shared"))) uint64_t shared_anchor;

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kLanes = 32;

inline bool same(const char* a, const char* b) { return a == b || !strcmp(a, b); }

inline bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && same(a.call, b.call) && same(a.file, b.file);
}

// What went wrong; filled once a launch. Python knows this layout.
struct Report {
    int line;
    char kind[28];
    char file[512];
    char message[1024];
};

enum class State : unsigned char { fresh, ready, at_barrier, in_warp, in_activemask, returned };

struct Warp;

struct Thread {
    State state;
    Stack* fiber;
    Warp* warp;
    uint3 index;
    Site site;  // of the call it waits in
    unsigned mask, lane;
    Together what;
    int source;  // the lane that a shuffle reads
    uint64_t value, result;
#ifdef TRTPATCH_WATCH
    unsigned clock[kLanes];  // how much of each lane of the warp this thread has seen
#endif
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
    const Thread* blamed;  // of the failure; null where it is nobody's
    Stack host;
    Stack fibers[kMaxThreads];  // made when first needed, kept from launch to launch
    char* stacks[kMaxThreads / kStacksAtOnce];
    Stack* idle[kMaxThreads];
    unsigned fiber_count, idle_count;
    void (*kernel)(const void*);
    const void* args;
    Report* report;
    uint64_t seed, random_state;
};

Block block;

inline void record(
    const char* kind, const Thread* blamed, Site site, const char* format, va_list values) {
    if (block.failed) return;
    block.failed = true;
    block.blamed = blamed;
    Report& report = *block.report;
    report.line = site.line;
    snprintf(report.kind, sizeof report.kind, "%s", kind);
    snprintf(report.file, sizeof report.file, "%s", site.file);
    vsnprintf(report.message, sizeof report.message, format, values);
}

// Ends the launch. A thread that is to blame waits in the call that is named.
__attribute__((format(printf, 3, 4))) inline void note(
    const char* kind, const Thread* blamed, const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(kind, blamed, blamed ? blamed->site : Site{"", 0, ""}, format, values);
    va_end(values);
}

// Leaves a thread's stack, or the host's. A thread is come back to after a failure only for it to
// say which calls led there.
inline void leave(Stack& from, Stack& to) {
    switch_stack(from, to);
#ifdef TRTPATCH_ASAN
    if (&from == &block.host || !block.failed) return;
    __sanitizer_print_stack_trace();
    switch_stack(from, block.host);
#endif
}

// Writes the calls of the thread that is to blame to stderr.
inline void tell_calls() {
#ifdef TRTPATCH_ASAN
    if (!block.blamed) return;
    fprintf(stderr, "trtpatch:calls\n");
    switch_stack(block.host, *block.blamed->fiber);
#endif
}

// Ends the launch from within a thread, whose stack is left as it is.
[[noreturn]] void fail(const char* kind, Site site, const char* format, ...) {
    va_list values;
    va_start(values, format);
    record(kind, block.current, site, format, values);
    va_end(values);
    leave(*block.current->fiber, block.host);
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
            const Thread& other = block.threads[j];
            if (other.state == State::returned || !(other.site == thread.site)) continue;
            seen[j] = true;
            ++together;
        }
        add("%s%u of %u threads wait in %s (%s:%d), the first is (%u, %u, %u)",
            counted++ ? "; " : "", together, block.size, thread.site.call, thread.site.file,
            thread.site.line, thread.index.x, thread.index.y, thread.index.z);
        if (thread.state == State::in_warp) add(" with mask 0x%08x", thread.mask);
    }
    if (returned) add("; %u returned", returned);
    if (first)
        note("divergence", first, "block (%u, %u, %u): %s", block_index.x, block_index.y,
             block_index.z, text);
}

}  // namespace on_host
