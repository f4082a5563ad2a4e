// CUDA's built-ins for a C++ compiler: a kernel's text, unchanged, runs on the CPU.
//
// The text is compiled inside one unnamed namespace, together with what these headers declare:
// an author's overload of `max` joins the built-in ones, as under NVRTC, and his names do not meet
// those of the C library. One kernel runs at a time, block after block; the threads of a block are
// fibers that yield at barriers, so any thread that runs, runs alone until its next barrier.
//
//   vectors.h      float4, dim3, make_float4
//   fibers.h       stacks and the switch between them
//   block.h        the threads of one block, and what is reported of them
//   schedule.h     who runs next, who waits for whom
//   sync.h         __syncthreads, __syncwarp, shuffles, votes, reductions
//   atomics.h      atomicAdd and its family
//   arithmetic.h   mathematics, bits, conversions, half
//   launch.h       a grid of blocks; what Python calls
//   guards.h       unaligned pointers and division by zero, where no sanitizer is linked
#pragma once

#define TRTPATCH_HOST 1

#if defined(__SANITIZE_ADDRESS__)
#define TRTPATCH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRTPATCH_ASAN 1
#endif
#endif

#include <type_traits>

#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // Bessel functions and the like: 0.15 s a unit
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <limits>
#include <utility>
#ifdef TRTPATCH_REPLAY
#include <vector>
#endif

#ifdef TRTPATCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((used, section("trtpatch_shared")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__

#include "vectors.h"
#include "fibers.h"
#include "block.h"
#include "schedule.h"
#include "sync.h"
#include "atomics.h"
#include "arithmetic.h"
#include "launch.h"
#ifdef TRTPATCH_REPLAY
#include "replay.h"
#else
#include "guards.h"
#endif

#undef assert
#define assert(truth) \
    ((truth) ? (void)0 : on_host::fail("assert", {__FILE__, __LINE__, "assert"}, \
                                       "assertion failed: " #truth))
