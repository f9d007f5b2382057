// The kernels of the random programs (tests/proof/executor/kernels.c) for a real GPU: the same
// computation on the same memory, by one thread, since what is tried is the order of things and the
// life of memory. `flops` stands for time, as the simulated GPU takes it.
#include <stdint.h>

#define inline __device__ inline
#include "cells.h"
#undef inline

static const uint64_t kFlopsPerNanosecond = 14000;  // of the card that the programs were made for

static __device__ void wait(uint64_t nanoseconds) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

static __device__ cells memory(uint64_t base, uint64_t first, uint64_t granules, uint64_t place) {
  return cells{reinterpret_cast<char*>(base + first * PROOF_GRANULE + place), PROOF_GRANULE,
               granules};
}

#define KERNEL(name, kind)                                                                       \
  extern "C" __global__ void name(uint64_t d, uint64_t d_first, uint64_t d_granules, uint64_t a, \
                                  uint64_t a_first, uint64_t a_granules, uint64_t b,             \
                                  uint64_t b_first, uint64_t b_granules, uint64_t salt,          \
                                  uint64_t place, uint64_t flops, uint64_t key) {                \
    if (blockIdx.x != 0 || threadIdx.x != 0) return;                                             \
    wait(flops / kFlopsPerNanosecond);                                                           \
    compute(kind, memory(d ^ key, d_first, d_granules, place),                                   \
            memory(a ^ key, a_first, a_granules, place),                                         \
            memory(b ^ key, b_first, b_granules, place), salt);                                  \
  }
KERNEL(fill, KERNEL_FILL)
KERNEL(update, KERNEL_UPDATE)
KERNEL(combine, KERNEL_COMBINE)
KERNEL(reduce, KERNEL_REDUCE)
KERNEL(gather, KERNEL_GATHER)
KERNEL(sparse, KERNEL_SPARSE)
