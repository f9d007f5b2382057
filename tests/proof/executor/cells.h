/* What the kernels of random programs compute, on cells: 8 bytes in each granule of memory. The
 * host module runs these on the GPU's memory, where a granule is 64 KiB, and the model runs the
 * same on plain arrays, so that the two can only differ in order and loss.
 */
#ifndef PROOF_CELLS_H
#define PROOF_CELLS_H

#include <stdint.h>

enum { PROOF_GRANULE = 1 << 16 }; /* bytes */
#define PROOF_KEY \
  0x5a5a000000000000ull /* what makes an address one that nobody but the kernel knows for one */

/* The first of `count` cells, `stride` bytes from one to the next. */
typedef struct cells {
  char* first;
  uint64_t stride;
  uint64_t count;
} cells;

static inline uint64_t* cell(const cells* of, uint64_t i) {
  return (uint64_t*)(of->first + i * of->stride);
}

/* splitmix64's finaliser */
static inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

enum kernel_kind {
  KERNEL_FILL,
  KERNEL_UPDATE,
  KERNEL_COMBINE,
  KERNEL_REDUCE,
  KERNEL_GATHER,
  KERNEL_SPARSE,
  KERNEL_KINDS
};

/* d is written by all; UPDATE and SPARSE (every third cell) read it too; COMBINE reads a and b,
 * REDUCE and GATHER read a. */
static inline void compute(enum kernel_kind kind, cells d, cells a, cells b, uint64_t salt) {
  uint64_t sum = salt;
  switch (kind) {
    case KERNEL_FILL:
      for (uint64_t i = 0; i < d.count; ++i) *cell(&d, i) = mixed(salt + i);
      break;
    case KERNEL_UPDATE:
      for (uint64_t i = 0; i < d.count; ++i) *cell(&d, i) = mixed(*cell(&d, i) + salt);
      break;
    case KERNEL_COMBINE:
      for (uint64_t i = 0; i < d.count; ++i)
        *cell(&d, i) = mixed(*cell(&a, i % a.count) ^ (*cell(&b, i % b.count) + salt));
      break;
    case KERNEL_REDUCE:
      for (uint64_t i = 0; i < a.count; ++i) sum = mixed(sum ^ *cell(&a, i));
      for (uint64_t i = 0; i < d.count; ++i) *cell(&d, i) = sum + i;
      break;
    case KERNEL_GATHER:
      for (uint64_t i = 0; i < d.count; ++i)
        *cell(&d, i) = mixed(*cell(&a, (i * 7 + salt) % a.count) + i);
      break;
    case KERNEL_SPARSE:
      for (uint64_t i = salt % 3; i < d.count; i += 3) *cell(&d, i) = mixed(*cell(&d, i) ^ salt);
      break;
    default:
      break;
  }
}

#endif
