// CUDA's built-ins for a C++ compiler: a kernel's text, unchanged, runs on the CPU.
//
// The text is compiled inside one unnamed namespace, together with what these headers declare:
// an author's overload of `max` joins the built-in ones, as under NVRTC, and his names do not meet
// those of the C library. One kernel runs at a time, block after block; the threads of a block are
// fibers that yield at barriers, so any thread that runs, runs alone until its next barrier.
//
// The text sees:
//   vectors.h      float4, dim3, make_float4
//   runtime.h      what the built-ins ask of the runtime
//   sync.h         __syncthreads, __syncwarp, shuffles, votes, reductions
//   atomics.h      atomicAdd and its family
//   arithmetic.h   mathematics, bits, conversions, half
//
// The runtime, compiled once a machine (runtime.cpp):
//   fibers.h       stacks and the switch between them
//   block.h        the threads of one block, and what is reported of them
//   schedule.h     who runs next
//   meeting.h      who waits for whom, and what they learn from each other
//   launch.h       a grid of blocks; what Python calls
//   guards.h       unaligned pointers and division by zero, where no sanitizer is linked
//   replay.h       a program that runs launches from a file, for the sanitizers
//   watch.h        races, and reads of what was not written
#pragma once

#define TRTPATCH_HOST 1

#include <type_traits>

#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // Bessel functions and the like: 0.15 s a unit
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <limits>

#include "vectors.h"
#include "runtime.h"

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

#undef assert
#define assert(truth)                                                                \
    ((truth) ? (void)0                                                               \
             : on_host::fail("assert", {__FILE__, __LINE__, "assert"}, "%s is not true", #truth))

#include "sync.h"
#include "atomics.h"
#include "arithmetic.h"
