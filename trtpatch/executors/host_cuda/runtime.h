// What a unit's text and the runtime share: the text is compiled for each unit, and under the
// sanitizers; the runtime once, and never under them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "vectors.h"

#pragma GCC visibility push(hidden)
namespace on_host {

extern uint3 thread_index, block_index;
extern dim3 block_size, grid_size;

constexpr unsigned kMaxSharedBytes = 227 * 1024;
extern unsigned char dynamic_shared_bytes[kMaxSharedBytes];

// Where in the author's text a thread waits, and in which call.
struct Site {
    const char* file;
    int line;
    const char* call;
};

// What the lanes of a warp do together.
enum class Together {
    sync, shuffle, ballot, all, match_any, match_all,
    sum, least_int, most_int, least_unsigned, most_unsigned, bits_and, bits_or, bits_xor,
};
enum class Shuffle { from, up, down, across };

// Waits for all threads of the block; gives the sum of their values.
unsigned meet_block(unsigned value, Site site);
// Waits for the lanes that the mask names.
uint64_t meet_warp(Together what, unsigned mask, uint64_t value, Site site);
uint64_t shuffle(Shuffle how, unsigned mask, uint64_t bits, int by, int width, Site site);
// The lanes that came to this call together.
unsigned active_lanes(Site site);
// Lets other threads run first: always, or now and then so that a seed tries other orders.
void yield();
void maybe_yield();
// __threadfence
void fence();
// Around an atomic access, for watch.h.
void begin_atomic();
void end_atomic();
// Ends the launch.
[[noreturn]] __attribute__((format(printf, 3, 4))) void fail(
    const char* kind, Site site, const char* format, ...);

struct Entry {
    void (*kernel)(const void* args);
    size_t args_bytes;
};
// The unit's kernels, in the order of its entries; defined after the author's text.
extern const Entry entries[];

template <auto kernel>
struct Call {
    static_assert(kernel == nullptr && kernel != nullptr,
                  "a kernel takes one struct by value and gives nothing back");
};
template <class Args, void (*kernel)(Args)>
struct Call<kernel> {
    static constexpr size_t bytes = sizeof(Args);
    static void run(const void* args) { kernel(*static_cast<const Args*>(args)); }
};

// What `extern __shared__ T name[];` becomes: see host_compiler.py.
template <class T>
inline T* dynamic_shared() {
    return reinterpret_cast<T*>(dynamic_shared_bytes);
}

}  // namespace on_host
#pragma GCC visibility pop
