// Stacks of their own for the threads of a block, and the switch between them.
//
// glibc's swapcontext enters the kernel twice a switch (about 400 ns); these few instructions take
// about 3 ns. AddressSanitizer is told of each switch.
#pragma once

#include <sys/mman.h>

#ifdef TRTPATCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
asm(R"(
    .text
    .p2align 4
trtpatch_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
#elif defined(__aarch64__)
asm(R"(
    .text
    .p2align 4
trtpatch_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#else
#error "the host executor knows x86-64 and aarch64"
#endif

// Saves the callee's registers on this stack and its pointer in *save, then goes on where the
// stack `load` was left.
extern "C" void trtpatch_switch(void** save, void* load) __asm__("trtpatch_switch");

namespace on_host {

// Room for a kernel's local arrays and for printf; pages that are never touched cost nothing.
constexpr size_t kStackBytes = 256 * 1024;
// Stacks come many in one mapping: Linux allows a process 65530 mappings, and it may hold hundreds
// of units.
constexpr unsigned kStacksAtOnce = 64;

struct Stack {
    void* pointer = nullptr;  // where it was left
    const void* bottom = nullptr;
    size_t bytes = 0;
    void* fake = nullptr;  // AddressSanitizer's own
};

inline void switch_stack(Stack& from, Stack& to) {
#ifdef TRTPATCH_ASAN
    __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
    trtpatch_switch(&from.pointer, to.pointer);
#ifdef TRTPATCH_ASAN
    __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}

// The first thing that runs on a new stack. The first one of all is reached from the host's stack,
// whose bounds are learnt then.
inline void arrive(Stack& host) {
#ifdef TRTPATCH_ASAN
    const bool first = !host.bottom;
    __sanitizer_finish_switch_fiber(nullptr, first ? &host.bottom : nullptr,
                                    first ? &host.bytes : nullptr);
#else
    (void)host;
#endif
}

inline char* map_stacks() {
    void* base = mmap(nullptr, kStacksAtOnce * kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    char* stacks = static_cast<char*>(base);
#ifdef TRTPATCH_REPLAY
    // One unit, one process: there is room to let an overflow fault. Elsewhere the compiler refuses
    // large frames.
    for (unsigned i = 0; i < kStacksAtOnce; ++i)
        mprotect(stacks + i * kStackBytes, kStackBytes / 4, PROT_NONE);
#endif
    return stacks;
}

inline void unmap_stacks(char* stacks) {
#ifdef TRTPATCH_ASAN
    __asan_unpoison_memory_region(stacks, kStacksAtOnce * kStackBytes);
#endif
    munmap(stacks, kStacksAtOnce * kStackBytes);
}

// Prepares a stack whose first switch goes to `start`, which must not return. The stacks of a block
// begin at different places in their pages, or they would push each other out of the processor's
// cache: a fifth of the time of a reduction by 256 threads.
inline void begin_stack(Stack& stack, char* bottom, unsigned index, void (*start)()) {
    stack.bottom = bottom;
    stack.bytes = kStackBytes;
    void** top = reinterpret_cast<void**>(bottom + kStackBytes - index % 64 * 256);
#if defined(__x86_64__)
    top[-2] = reinterpret_cast<void*>(start);  // popped by `ret`; top[-1] ends a back trace
    stack.pointer = top - 8;
#else
    top[-9] = reinterpret_cast<void*>(start);  // x30
    stack.pointer = top - 20;
#endif
}

}  // namespace on_host
