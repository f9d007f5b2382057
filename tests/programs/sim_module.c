/* A host module: kernels for the simulated GPU's tests, executed on the data. */
#include "host_module.h"

static uint64_t address(const deepum_host_launch* l, int i) { return *(uint64_t*)l->parameters[i]; }
static uint64_t count(const deepum_host_launch* l, int i) { return *(uint64_t*)l->parameters[i]; }

/* scale(float *data, uint64_t n, float by) */
static void scale_run(const deepum_host_launch* l) {
  float *data = (float*)address(l, 0), by = *(float*)l->parameters[2];
  for (uint64_t i = 0; i < count(l, 1); ++i) data[i] *= by;
}
static size_t scale_accesses(const deepum_host_launch* l, deepum_host_access* a, size_t most) {
  if (most > 0) a[0] = (deepum_host_access){address(l, 0), 4 * count(l, 1), 1, 1};
  return 1;
}

/* add(const float *a, const float *b, float *out, uint64_t n) */
static void add_run(const deepum_host_launch* l) {
  const float *a = (const float*)address(l, 0), *b = (const float*)address(l, 1);
  float* out = (float*)address(l, 2);
  for (uint64_t i = 0; i < count(l, 3); ++i) out[i] = a[i] + b[i];
}
static size_t add_accesses(const deepum_host_launch* l, deepum_host_access* a, size_t most) {
  for (int i = 0; i < 3 && (size_t)i < most; ++i)
    a[i] = (deepum_host_access){address(l, i), 4 * count(l, 3), i < 2, i == 2};
  return 3;
}

/* set(float *data, uint64_t n, float value): writes without reading */
static void set_run(const deepum_host_launch* l) {
  float* data = (float*)address(l, 0);
  for (uint64_t i = 0; i < count(l, 1); ++i) data[i] = *(float*)l->parameters[2];
}
static size_t set_accesses(const deepum_host_launch* l, deepum_host_access* a, size_t most) {
  if (most > 0) a[0] = (deepum_host_access){address(l, 0), 4 * count(l, 1), 0, 1};
  return 1;
}

/* slow(uint64_t flops): touches nothing */
static double slow_flops(const deepum_host_launch* l) { return (double)count(l, 0); }

/* shape(uint32_t *out): writes the launch's grid, block and shared memory */
static void shape_run(const deepum_host_launch* l) {
  uint32_t* out = (uint32_t*)address(l, 0);
  for (int i = 0; i < 3; ++i) out[i] = l->grid[i], out[3 + i] = l->block[i];
  out[6] = l->shared_bytes;
}
static size_t shape_accesses(const deepum_host_launch* l, deepum_host_access* a, size_t most) {
  if (most > 0) a[0] = (deepum_host_access){address(l, 0), 28, 0, 1};
  return 1;
}

/* read_anything(const float *data, uint64_t n): as a library's kernel, which cannot know whether
 * its caller wrote that */
static size_t read_accesses(const deepum_host_launch* l, deepum_host_access* a, size_t most) {
  if (most > 0) a[0] = (deepum_host_access){address(l, 0), 4 * count(l, 1), 1, 0};
  return 1;
}

/* unknown(void *data): nobody knows what it touches */

static const uint32_t scale_sizes[] = {8, 8, 4}, add_sizes[] = {8, 8, 8, 8}, one[] = {8},
                      mixed_sizes[] = {1, 8, 2, 12};

static const deepum_host_kernel kernels[] = {
    {.name = "scale",
     .parameter_count = 3,
     .parameter_sizes = scale_sizes,
     .run = scale_run,
     .accesses = scale_accesses},
    {.name = "add",
     .parameter_count = 4,
     .parameter_sizes = add_sizes,
     .run = add_run,
     .accesses = add_accesses},
    {.name = "set",
     .parameter_count = 3,
     .parameter_sizes = scale_sizes,
     .run = set_run,
     .accesses = set_accesses},
    {.name = "slow", .parameter_count = 1, .parameter_sizes = one, .flops = slow_flops},
    {.name = "shape",
     .parameter_count = 1,
     .parameter_sizes = one,
     .run = shape_run,
     .accesses = shape_accesses},
    {.name = "read_anything",
     .parameter_count = 2,
     .parameter_sizes = add_sizes,
     .accesses = read_accesses,
     .reads_unwritten = 1},
    {.name = "unknown", .parameter_count = 1, .parameter_sizes = one, .unknown = 1},
    {.name = "mixed", .parameter_count = 4, .parameter_sizes = mixed_sizes},
};

__attribute__((visibility("default"))) const deepum_host_module_table deepum_host_module = {
    DEEPUM_HOST_MODULE_MAGIC, DEEPUM_HOST_MODULE_VERSION, sizeof kernels / sizeof kernels[0],
    kernels};
