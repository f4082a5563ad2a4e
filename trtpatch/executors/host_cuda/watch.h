// Finds races and reads of what nobody has written, in the order in which threads happen to run.
//
// The unit is compiled with -fsanitize=thread, which calls a function before each access to memory;
// those functions are here, in place of ThreadSanitizer's own runtime. For every 4 bytes of
// outputs, scratch and shared memory the last write and the last read are kept. Two accesses of
// different threads, one of them a write, are a race unless a barrier of the block or a __syncwarp
// lies between, or both are atomic or volatile, or the first one's block has called __threadfence
// since its barrier. A write that changes nothing is none. Shuffles and votes order nothing, as the
// CUDA programming guide says of them.
//
// The last read stands for all reads, and gcc does not tell of a struct that a function gives back
// straight into memory: races can be missed, but none is invented. What was written unseen shows by
// no longer being poison.
#pragma once

namespace on_host {

#ifndef TRTPATCH_WATCH

inline void watch_shared(unsigned char) {}
inline void watch_buffer(size_t, unsigned char*, size_t, unsigned char, bool) {}
inline void watch_launch(uint64_t) {}
inline void watch_block(uint64_t) {}
inline void watch_barrier() {}
inline void watch_lanes(Warp&, unsigned) {}
inline void watch_return() {}
void fence() {}
void begin_atomic() {}
void end_atomic() {}

#else

struct Access {
    uint32_t block, epoch, clock;  // epoch: barriers of the block; clock: __syncwarps of the thread
    uint32_t code;                 // address of the instruction; 0: no access
    uint16_t thread;
    uint8_t bytes;  // mask
    bool atomic;
};

struct Cell {
    Access write, read;
    uint8_t written;  // mask of bytes
};

struct Region {
    int number;  // of the buffer; -1: static shared memory, -2: dynamic
    unsigned char* start;
    size_t bytes;
    unsigned char poison;  // each byte of it that nobody has written
    Cell* cells;
};

// A write that races, unless it turns out not to change anything.
struct Suspect {
    const Region* region;
    size_t offset, bytes;
    unsigned char before[16];
    Access now, other;
    const char* how;
};

constexpr int kSharedRegions = 2;
constexpr unsigned kMaxReports = 64;

struct Watch {
    Region* regions;
    size_t count, last;
    uint32_t block, epoch;
    uint32_t* fenced;  // for each block of the grid, 1 + the epoch of its last fence
    bool in_atomic;
    Suspect suspect;
    uint64_t reported[kMaxReports];
    unsigned report_count;
} watch;

inline void add_region(
    int number, unsigned char* start, size_t bytes, unsigned char poison, bool written) {
    const size_t count = bytes / 4 + 2, size = (watch.count + 1) * sizeof(Region);
    Cell* cells = static_cast<Cell*>(calloc(count, sizeof(Cell)));
    watch.regions = static_cast<Region*>(realloc(watch.regions, size));
    watch.regions[watch.count++] = {number, start, bytes, poison, cells};
    for (size_t i = 0; i < count; ++i) cells[i].written = written ? 15 : 0;
}

inline void watch_shared(unsigned char poison) {
    while (watch.count) free(watch.regions[--watch.count].cells);
    add_region(-1, __start_trtpatch_shared,
               (size_t)(__stop_trtpatch_shared - __start_trtpatch_shared), poison, false);
    add_region(-2, dynamic_shared_bytes, kMaxSharedBytes, poison, false);
}

inline void watch_buffer(
    size_t number, unsigned char* start, size_t bytes, unsigned char poison, bool given) {
    add_region((int)number, start, bytes, poison, given);
}

// What was done before the launch, or in another launch, is ordered before all that comes.
inline void watch_launch(uint64_t blocks) {
    free(watch.fenced);
    watch.fenced = static_cast<uint32_t*>(calloc(blocks, sizeof(uint32_t)));
    for (size_t r = kSharedRegions; r < watch.count; ++r)
        for (size_t i = 0; i < watch.regions[r].bytes / 4 + 2; ++i)
            watch.regions[r].cells[i].write.code = watch.regions[r].cells[i].read.code = 0;
}

inline void watch_block(uint64_t number) {
    watch.block = (uint32_t)number;
    watch.epoch = 0;
    for (int r = 0; r < kSharedRegions && watch.count; ++r)
        memset(watch.regions[r].cells, 0, (watch.regions[r].bytes / 4 + 2) * sizeof(Cell));
    for (unsigned i = 0; i < block.size; ++i) {
        memset(block.threads[i].clock, 0, sizeof block.threads[i].clock);
        block.threads[i].clock[block.threads[i].lane] = 1;
    }
}

inline void report_access(const char* how, const Region& region, size_t offset, const Access& now,
                          const Access& other) {
    const uint64_t pair = (uint64_t)now.code << 32 | other.code;
    for (unsigned i = 0; i < watch.report_count; ++i)
        if (watch.reported[i] == pair) return;
    if (watch.report_count == kMaxReports) return;
    watch.reported[watch.report_count++] = pair;
    fprintf(stderr, "trtpatch:%s %x %x %d %zu %u %u %u %u\n", how, now.code, other.code,
            region.number, offset, now.block, now.thread, other.block, other.thread);
}

// Called before anything else happens: by then the suspected write is done.
inline void settle() {
    Suspect& suspect = watch.suspect;
    if (!suspect.region) return;
    const unsigned char* now = suspect.region->start + suspect.offset;
    if (memcmp(now, suspect.before, suspect.bytes))
        report_access(suspect.how, *suspect.region, suspect.offset, suspect.now, suspect.other);
    suspect.region = nullptr;
}

inline bool ordered(const Access& before, const Access& now) {
    if (!before.code || !(before.bytes & now.bytes)) return true;
    if (before.block == now.block) {
        if (before.thread == now.thread || before.epoch < now.epoch) return true;
        const bool same_warp = before.thread / kLanes == now.thread / kLanes;
        const unsigned* seen = block.current->clock;
        if (same_warp && before.clock <= seen[before.thread % kLanes]) return true;
    }
    return (before.atomic && now.atomic) || before.epoch < watch.fenced[before.block];
}

inline void suspect_write(
    const Region& region, size_t offset, size_t bytes, const Access& now, const Cell& cell) {
    const bool with_write = !ordered(cell.write, now);
    if (watch.suspect.region || (!with_write && ordered(cell.read, now))) return;
    watch.suspect = {&region, offset, bytes < 16 ? bytes : 16, {}, now,
                     with_write ? cell.write : cell.read,
                     with_write ? "write-write" : "read-write"};
    memcpy(watch.suspect.before, region.start + offset, watch.suspect.bytes);
}

// Notes which bytes of a cell have been written, unseen; gives whether any of those asked for has.
inline bool any_written(const Region& region, size_t at, Cell& cell, uint8_t bytes) {
    for (unsigned i = 0; i < 4; ++i)
        if (bytes >> i & 1 && region.start[at + i] != region.poison)
            cell.written |= (uint8_t)(1u << i);
    return bytes & cell.written;
}

inline void touch(const Region& region, size_t offset, size_t bytes, bool writes, Access now) {
    bool written = writes;
    for (size_t at = offset & ~(size_t)3; at < offset + bytes; at += 4) {
        Cell& cell = region.cells[at / 4];
        now.bytes = 0;
        for (size_t i = 0; i < 4; ++i)
            if (at + i >= offset && at + i < offset + bytes) now.bytes |= (uint8_t)(1u << i);
        if (writes) {
            suspect_write(region, offset, bytes, now, cell);
            cell.write = now;
            cell.written |= now.bytes;
        } else {
            if (!ordered(cell.write, now))
                report_access("write-read", region, offset, now, cell.write);
            written |= any_written(region, at, cell, now.bytes);
            cell.read = now;
        }
    }
    // A struct may have padding, and a wide load a tail that nobody looks at.
    if (!written) report_access("unwritten", region, offset, now, {});
}

// Called before each access of a kernel.
inline void access(const void* address, size_t bytes, bool writes, bool atomic, const void* code) {
    settle();
    const unsigned char* at = static_cast<const unsigned char*>(address);
    for (size_t i = 0; i < watch.count; ++i) {
        const size_t index = (watch.last + i) % watch.count;
        const Region& region = watch.regions[index];
        if (at < region.start || at + bytes > region.start + region.bytes) continue;
        watch.last = index;
        const Thread& me = *block.current;
        const Access now = {watch.block, watch.epoch, me.clock[me.lane],
                            (uint32_t)(uintptr_t)code, (uint16_t)(&me - block.threads), 0,
                            atomic || watch.in_atomic};
        return touch(region, (size_t)(at - region.start), bytes, writes, now);
    }
}

inline void watch_barrier() {
    settle();
    ++watch.epoch;
}

// A __syncwarp: each of the lanes has now seen what all of them have seen.
inline void watch_lanes(Warp& warp, unsigned lanes) {
    settle();
    unsigned all[kLanes] = {};
    for (unsigned rest = lanes; rest; rest &= rest - 1)
        for (unsigned i = 0; i < kLanes; ++i) {
            const unsigned seen = warp.threads[__builtin_ctz(rest)].clock[i];
            if (seen > all[i]) all[i] = seen;
        }
    for (unsigned rest = lanes; rest; rest &= rest - 1) {
        Thread& thread = warp.threads[__builtin_ctz(rest)];
        memcpy(thread.clock, all, sizeof all);
        ++thread.clock[thread.lane];
    }
}

inline void watch_return() { settle(); }

void fence() {
    settle();
    watch.fenced[watch.block] = watch.epoch + 1;
}

void begin_atomic() { watch.in_atomic = true; }
void end_atomic() {
    settle();
    watch.in_atomic = false;
}

#endif

}  // namespace on_host

#ifdef TRTPATCH_WATCH
#define TRTPATCH_HOOK(name, bytes, writes, atomic)                                            \
    void __tsan_##name##bytes(void* address) {                                                \
        on_host::access(address, bytes, writes, atomic, __builtin_return_address(0));         \
    }
#define TRTPATCH_HOOKS(bytes)                               \
    TRTPATCH_HOOK(read, bytes, false, false)                \
    TRTPATCH_HOOK(write, bytes, true, false)                \
    TRTPATCH_HOOK(unaligned_read, bytes, false, false)      \
    TRTPATCH_HOOK(unaligned_write, bytes, true, false)      \
    TRTPATCH_HOOK(volatile_read, bytes, false, true)        \
    TRTPATCH_HOOK(volatile_write, bytes, true, true)        \
    TRTPATCH_HOOK(unaligned_volatile_read, bytes, false, true) \
    TRTPATCH_HOOK(unaligned_volatile_write, bytes, true, true)

#pragma GCC visibility push(default)
extern "C" {
TRTPATCH_HOOKS(1)
TRTPATCH_HOOKS(2)
TRTPATCH_HOOKS(4)
TRTPATCH_HOOKS(8)
TRTPATCH_HOOKS(16)
void __tsan_read_range(void* address, size_t bytes) {
    on_host::access(address, bytes, false, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, size_t bytes) {
    on_host::access(address, bytes, true, false, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
#pragma GCC visibility pop
#undef TRTPATCH_HOOKS
#undef TRTPATCH_HOOK
#endif
