/* The host module of random programs (docs/simulated-gpu.md): the kernels of cells.h on the GPU's
 * memory, which say what they touch. Parameters: three memories as (address, first granule,
 * granules); an address of 0 stands for none. Then the salt, the place of the cell in its granule
 * in bytes, the floating-point operations that it takes, which is its time, and the key that its
 * addresses are XORed with.
 */
#include "cells.h"
#include "host_module.h"

static uint64_t parameter(const deepum_host_launch* l, int i) {
  return *(const uint64_t*)l->parameters[i];
}

enum { SALT = 9, PLACE = 10, FLOPS = 11, KEY = 12, PARAMETERS = 13 };

static uint64_t start(const deepum_host_launch* l, int memory) {
  return (parameter(l, 3 * memory) ^ parameter(l, KEY)) +
         parameter(l, 3 * memory + 1) * PROOF_GRANULE;
}

static cells memory(const deepum_host_launch* l, int memory) {
  return (cells){(char*)(start(l, memory) + parameter(l, PLACE)), PROOF_GRANULE,
                 parameter(l, 3 * memory + 2)};
}

/* Granules from the first one on. What is read are their cells: a memset may have written no more
 * than those. */
static deepum_host_access access(const deepum_host_launch* l, int memory, uint64_t first,
                                 uint64_t granules, int read, int written) {
  const uint64_t at = start(l, memory) + first * PROOF_GRANULE;
  if (!read) return (deepum_host_access){at, granules * PROOF_GRANULE, 0, (uint32_t)written};
  return (deepum_host_access){at + parameter(l, PLACE),
                              (granules - 1) * PROOF_GRANULE + sizeof(uint64_t), 1,
                              (uint32_t)written};
}

static size_t list(const deepum_host_launch* l, deepum_host_access* out, size_t most, int read,
                   int whole) {
  size_t count = 0;
  for (int i = 1; i < 3; ++i) {
    if (parameter(l, 3 * i) == 0) continue;
    if (count < most) out[count] = access(l, i, 0, parameter(l, 3 * i + 2), 1, 0);
    ++count;
  }
  const uint64_t granules = parameter(l, 2);
  for (uint64_t i = whole ? 0 : parameter(l, SALT) % 3; i < granules; i += whole ? granules : 3) {
    if (count < most) out[count] = access(l, 0, i, whole ? granules : 1, read, 1);
    ++count;
  }
  return count;
}

static double flops(const deepum_host_launch* l) { return (double)parameter(l, FLOPS); }

#define KERNEL(name, kind, read, whole)                                               \
  static void name##_run(const deepum_host_launch* l) {                               \
    compute(kind, memory(l, 0), memory(l, 1), memory(l, 2), parameter(l, SALT));      \
  }                                                                                   \
  static size_t name##_accesses(const deepum_host_launch* l, deepum_host_access* out, \
                                size_t most) {                                        \
    return list(l, out, most, read, whole);                                           \
  }
KERNEL(fill, KERNEL_FILL, 0, 1)
KERNEL(update, KERNEL_UPDATE, 1, 1)
KERNEL(combine, KERNEL_COMBINE, 0, 1)
KERNEL(reduce, KERNEL_REDUCE, 0, 1)
KERNEL(gather, KERNEL_GATHER, 0, 1)
KERNEL(sparse, KERNEL_SPARSE, 1, 0)

static const uint32_t sizes[PARAMETERS] = {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
#define ENTRY(kernel)             \
  {.name = #kernel,               \
   .parameter_count = PARAMETERS, \
   .parameter_sizes = sizes,      \
   .run = kernel##_run,           \
   .accesses = kernel##_accesses, \
   .flops = flops}
static const deepum_host_kernel kernels[KERNEL_KINDS] = {
    ENTRY(fill), ENTRY(update), ENTRY(combine), ENTRY(reduce), ENTRY(gather), ENTRY(sparse)};

__attribute__((visibility("default"))) const deepum_host_module_table deepum_host_module = {
    DEEPUM_HOST_MODULE_MAGIC, DEEPUM_HOST_MODULE_VERSION, KERNEL_KINDS, kernels};
