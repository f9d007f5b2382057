/* Host modules: kernels for the simulated GPU that are compiled for the CPU and run on the data.
 *
 * A host module is an ELF shared object, given as a module image (cuModuleLoad, cuModuleLoadData,
 * cuLibraryLoadData), that exports one symbol, `deepum_host_module`. Its kernels look to the
 * program like any others: found by name, parameter layouts answered by cuFuncGetParamInfo,
 * launched with kernelParams. See docs/simulated-gpu.md.
 */
#ifndef DEEPUM_HOST_MODULE_H
#define DEEPUM_HOST_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define DEEPUM_HOST_MODULE_MAGIC 0x4d48554d50454544ull /* "DEEPUMHM" */
#define DEEPUM_HOST_MODULE_VERSION 2u

typedef struct deepum_host_launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t parameter_count;
  void* const* parameters; /* copies of the values, taken at the launch */
} deepum_host_launch;

typedef struct deepum_host_access {
  uint64_t address;
  uint64_t bytes;
  uint32_t read;  /* 0 or 1 */
  uint32_t write; /* 0 or 1 */
} deepum_host_access;

typedef struct deepum_host_kernel {
  const char* name;
  uint32_t parameter_count;
  /* Bytes; each is aligned to its size rounded up to a power of two, at most 8. */
  const uint32_t* parameter_sizes;
  /* The work, all threads at once, when the kernel completes in virtual time. NULL: no arithmetic
   * is done. */
  void (*run)(const deepum_host_launch* launch);
  /* What it touches, in order; fills up to `most`, returns how many there are. Called at the
   * launch. */
  size_t (*accesses)(const deepum_host_launch* launch, deepum_host_access* accesses, size_t most);
  /* Floating-point operations; NULL: 0. */
  double (*flops)(const deepum_host_launch* launch);
  uint32_t matrix_units; /* 1: flops run at the matrix units' rate */
  /* 1: every thread block takes a multiprocessor for an equal part of the flops; 0: they are
   * divided at will. */
  uint32_t tiled;
  /* What the checker of discards may conclude. Both 0: the kernel touches what `accesses` lists,
   * and reads only what was written; then a read of memory that was discarded and not written since
   * is an error. */
  /* 1: it may be given memory that was never written: such a read is counted, but no error. */
  uint32_t reads_unwritten;
  uint32_t unknown; /* 1: it may touch more than `accesses` lists */
} deepum_host_kernel;

typedef struct deepum_host_module_table {
  uint64_t magic;
  uint32_t version;
  uint32_t kernel_count;
  const deepum_host_kernel* kernels;
} deepum_host_module_table;

/* extern const deepum_host_module_table deepum_host_module; */

#endif
