/* A host module: a kernel for the simulated GPU, compiled for the CPU and run on the data
 * (docs/simulated-gpu.md). gcc -O2 -shared -fPIC -I../../native/simgpu kernels.c -o kernels.so
 */
#include "host_module.h"

/* add(uint32_t *data, uint64_t count, uint32_t amount): data[i] += amount */
static void add_run(const deepum_host_launch* launch) {
  uint32_t* data = *(uint32_t* const*)launch->parameters[0];
  const uint64_t count = *(const uint64_t*)launch->parameters[1];
  const uint32_t amount = *(const uint32_t*)launch->parameters[2];
  for (uint64_t i = 0; i < count; i++) data[i] += amount;
}

static size_t add_accesses(const deepum_host_launch* launch, deepum_host_access* accesses,
                           size_t most) {
  if (most > 0) {
    accesses[0].address = *(const uint64_t*)launch->parameters[0];
    accesses[0].bytes = *(const uint64_t*)launch->parameters[1] * sizeof(uint32_t);
    accesses[0].read = 1;
    accesses[0].write = 1;
  }
  return 1;
}

static double add_flops(const deepum_host_launch* launch) {
  return (double)*(const uint64_t*)launch->parameters[1];
}

static const uint32_t add_parameters[] = {8, 8, 4};
static const deepum_host_kernel kernels[] = {
    {.name = "add",
     .parameter_count = 3,
     .parameter_sizes = add_parameters,
     .run = add_run,
     .accesses = add_accesses,
     .flops = add_flops},
};

__attribute__((visibility("default"))) const deepum_host_module_table deepum_host_module = {
    .magic = DEEPUM_HOST_MODULE_MAGIC,
    .version = DEEPUM_HOST_MODULE_VERSION,
    .kernel_count = 1,
    .kernels = kernels,
};
