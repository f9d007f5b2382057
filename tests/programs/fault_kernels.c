/* A host module for the tests of faults: fill writes an array, add reads one and adds it to
 * another. They say that they touch all of the 4 MiB, and compute `count` elements that lie evenly
 * in it. */
#include "host_module.h"

enum { ARRAY = 4 << 20 };

static uint32_t* array(const deepum_host_launch* launch, int parameter) {
  return *(uint32_t* const*)launch->parameters[parameter];
}
static uint64_t count(const deepum_host_launch* launch) {
  return *(const uint64_t*)launch->parameters[0];
}
static uint64_t stride(const deepum_host_launch* launch) {
  return ARRAY / sizeof(uint32_t) / count(launch);
}

/* fill(uint64_t count, uint32_t *data, uint32_t value): data[i * stride] = value + i */
static void fill_run(const deepum_host_launch* launch) {
  const uint32_t value = *(const uint32_t*)launch->parameters[2];
  uint32_t* data = array(launch, 1);
  for (uint64_t i = 0; i < count(launch); i++) data[i * stride(launch)] = value + (uint32_t)i;
}

/* add(uint64_t count, uint32_t *sum, const uint32_t *data): sum[i * stride] += data[i * stride] */
static void add_run(const deepum_host_launch* launch) {
  uint32_t* sum = array(launch, 1);
  const uint32_t* data = array(launch, 2);
  for (uint64_t i = 0; i < count(launch); i++) sum[i * stride(launch)] += data[i * stride(launch)];
}

static deepum_host_access access_of(const deepum_host_launch* launch, int parameter, int read,
                                    int write) {
  deepum_host_access made = {.address = *(const uint64_t*)launch->parameters[parameter],
                             .bytes = ARRAY};
  made.read = read != 0;
  made.write = write != 0;
  return made;
}

static size_t fill_accesses(const deepum_host_launch* launch, deepum_host_access* accesses,
                            size_t most) {
  if (most > 0) accesses[0] = access_of(launch, 1, 0, 1);
  return 1;
}

static size_t add_accesses(const deepum_host_launch* launch, deepum_host_access* accesses,
                           size_t most) {
  if (most > 0) accesses[0] = access_of(launch, 1, 1, 1);
  if (most > 1) accesses[1] = access_of(launch, 2, 1, 0);
  return 2;
}

static const uint32_t fill_parameters[] = {8, 8, 4};
static const uint32_t add_parameters[] = {8, 8, 8};
static const deepum_host_kernel kernels[] = {
    {.name = "fill",
     .parameter_count = 3,
     .parameter_sizes = fill_parameters,
     .run = fill_run,
     .accesses = fill_accesses},
    {.name = "add",
     .parameter_count = 3,
     .parameter_sizes = add_parameters,
     .run = add_run,
     .accesses = add_accesses},
};

__attribute__((visibility("default"))) const deepum_host_module_table deepum_host_module = {
    .magic = DEEPUM_HOST_MODULE_MAGIC,
    .version = DEEPUM_HOST_MODULE_VERSION,
    .kernel_count = 2,
    .kernels = kernels,
};
