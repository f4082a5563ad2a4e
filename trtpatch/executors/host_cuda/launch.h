// A grid of blocks, and the function that Python calls.
#pragma once

#include <pthread.h>

namespace on_host {

constexpr unsigned kMaxArgsBytes = 32 * 1024;

// One launch, as Python fills it.
struct Launch {
    uint32_t entry;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t poison;  // byte that shared memory is filled with before each block
    uint32_t args_bytes;
    uint64_t seed;  // 0: threads and blocks in the order of their indices
    const void* args;
};

#ifdef TRTPATCH_ASAN
// Not by memset, which AddressSanitizer checks: there are guard zones between the arrays.
void fill(unsigned char* start, unsigned char* stop, uint32_t value) {
    for (volatile unsigned char* p = start; p < stop; ++p) *p = (unsigned char)value;
}
#else
void fill(unsigned char* start, unsigned char* stop, uint32_t value) {
    memset(start, (int)value, (size_t)(stop - start));
}
#endif

// The bytes behind the dynamic shared memory that a launch asks for, which no thread may write.
// Where AddressSanitizer watches, they are poisoned instead.
struct Guard {
    static constexpr unsigned char kByte = 0xA5;
    unsigned char* start;
    uint32_t size;

    explicit Guard(const Launch& launch) {
        const uint32_t room = kMaxSharedBytes - launch.shared_bytes;
        start = dynamic_shared_bytes + launch.shared_bytes;
        size = room < 4096 ? room : 4096;
#ifdef TRTPATCH_ASAN
        __asan_poison_memory_region(dynamic_shared_bytes, kMaxSharedBytes);
        __asan_unpoison_memory_region(dynamic_shared_bytes, launch.shared_bytes);
        size = 0;
#endif
        memset(start, kByte, size);
    }

    void check(const Launch& launch) const {
        if (!size || (start[0] == kByte && !memcmp(start, start + 1, size - 1))) return;
        uint32_t first = 0;
        while (start[first] == kByte) ++first;
        note("out-of-bounds", nullptr,
             "block (%u, %u, %u) writes byte %u of dynamic shared memory; 'shared:' of the launch"
             " asks for %u bytes", block_index.x, block_index.y, block_index.z,
             launch.shared_bytes + first, launch.shared_bytes);
    }
};

inline void run_thread(Thread& thread) {
    block.kernel(block.args);
    watch_return();
    thread.state = State::returned;
    --block.alive;
    thread.warp->returned |= 1u << thread.lane;
    if (thread.warp->waiting) resolve_others(*thread.warp);
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

// Runs the block at block_index until all threads have returned or one has failed.
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
        if (block.seed) shuffle_items(block.order, block.size);
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

inline void set_up_threads(const Launch& launch) {
    unsigned i = 0;
    for (unsigned z = 0; z < launch.block[2]; ++z)
        for (unsigned y = 0; y < launch.block[1]; ++y)
            for (unsigned x = 0; x < launch.block[0]; ++x, ++i) {
                Thread& thread = block.threads[i];
                thread.index = {x, y, z};
                thread.lane = i % kLanes;
                thread.warp = &block.warps[i / kLanes];
                block.order[i] = i;
            }
    block.size = i;
    for (unsigned w = 0; w * kLanes < i; ++w) {
        const unsigned lanes = i - w * kLanes < kLanes ? i - w * kLanes : kLanes;
        block.warps[w] = {&block.threads[w * kLanes], ~0u >> (kLanes - lanes), 0, 0};
    }
}

// After a failure, threads of theirs are still in the middle.
inline void drop_fibers() {
    for (unsigned i = 0; i < block.fiber_count; i += kStacksAtOnce)
        unmap_stacks(block.stacks[i / kStacksAtOnce]);
    block.fiber_count = block.idle_count = 0;
}

inline void run_grid(const Launch& launch, const Entry& entry, Report* report) {
    alignas(64) static unsigned char args[kMaxArgsBytes];
    memcpy(args, launch.args, launch.args_bytes);
    const uint64_t columns = launch.grid[0], rows = launch.grid[1];
    const uint64_t blocks = columns * rows * launch.grid[2];
    grid_size = {launch.grid[0], launch.grid[1], launch.grid[2]};
    block_size = {launch.block[0], launch.block[1], launch.block[2]};
    block.kernel = entry.kernel;
    block.args = args;
    block.report = report;
    block.failed = false;
    block.seed = block.random_state = launch.seed;
    set_up_threads(launch);
    watch_launch(blocks);
    uint32_t* order = launch.seed ? static_cast<uint32_t*>(malloc(blocks * 4)) : nullptr;
    for (uint64_t i = 0; order && i < blocks; ++i) order[i] = (uint32_t)i;
    if (order) shuffle_items(order, blocks);
    const Guard guard(launch);
    for (uint64_t i = 0; i < blocks && !block.failed; ++i) {
        const uint64_t b = order ? order[i] : i;
        block_index = {(unsigned)(b % columns), (unsigned)(b / columns % rows),
                       (unsigned)(b / columns / rows)};
        fill(__start_trtpatch_shared, __stop_trtpatch_shared, launch.poison);
        fill(dynamic_shared_bytes, dynamic_shared_bytes + launch.shared_bytes, launch.poison);
        watch_block(b);
        run_block();
        guard.check(launch);
    }
    free(order);
    if (!block.failed) return;
    tell_calls();
    drop_fibers();
}

}  // namespace on_host

// Runs a grid to its end. `report->kind` is empty unless something went wrong.
extern "C" __attribute__((visibility("default"))) void trtpatch_launch(
    const on_host::Launch* launch, on_host::Report* report) {
    const on_host::Entry& entry = on_host::entries[launch->entry];
    if (launch->args_bytes != entry.args_bytes) {
        snprintf(report->kind, sizeof report->kind, "args");
        snprintf(report->message, sizeof report->message, "Args has %zu bytes, %u were given",
                 entry.args_bytes, launch->args_bytes);
        return;
    }
    // Shared memory and the fibers are the unit's, whoever calls.
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    on_host::run_grid(*launch, entry, report);
    pthread_mutex_unlock(&one_at_a_time);
}
