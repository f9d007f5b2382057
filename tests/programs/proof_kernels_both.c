/* The kernels of random programs for a real GPU (proof_kernels_on_host.cpp) and for the simulated
 * one (kernels.c) get the same parameters and the same memory. Names each one that leaves something
 * else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.c"

typedef void gpu_kernel(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
extern gpu_kernel fill, update, combine, reduce, gather, sparse;
static const struct {
  const char* name;
  gpu_kernel* run;
} for_gpu[KERNEL_KINDS] = {{"fill", fill},     {"update", update}, {"combine", combine},
                           {"reduce", reduce}, {"gather", gather}, {"sparse", sparse}};

enum { MEMORIES = 3, GRANULES = 16, BYTES = GRANULES * PROOF_GRANULE };
enum { OF_GPU, OF_HOST };

int main(void) {
  char* memories[2][MEMORIES];
  for (int i = 0; i < MEMORIES; ++i) {
    for (int of = OF_GPU; of <= OF_HOST; ++of) {
      memories[of][i] = malloc(BYTES);
      for (uint64_t at = 0; at < BYTES / 8; ++at)
        ((uint64_t*)memories[of][i])[at] = mixed(at + 1000 * (uint64_t)i);
    }
  }
  int wrong = 0;
  for (int kind = 0; kind < KERNEL_KINDS; ++kind) {
    for (int hidden = 0; hidden < 2; ++hidden) {
      const uint64_t key = hidden ? PROOF_KEY : 0;
      uint64_t v[2][PARAMETERS];
      void* parameters[PARAMETERS];
      for (int of = OF_GPU; of <= OF_HOST; ++of) {
        for (int i = 0; i < MEMORIES; ++i) {
          v[of][3 * i] = (uint64_t)memories[of][i] ^ key;
          v[of][3 * i + 1] = 1 + (uint64_t)i;      /* first */
          v[of][3 * i + 2] = 11 - 2 * (uint64_t)i; /* granules */
        }
        v[of][SALT] = 12345 + (uint64_t)kind;
        v[of][PLACE] = 24;
        v[of][FLOPS] = 0;
        v[of][KEY] = key;
      }
      for (int i = 0; i < PARAMETERS; ++i) parameters[i] = &v[OF_HOST][i];
      const deepum_host_launch launch = {.parameter_count = PARAMETERS, .parameters = parameters};
      kernels[kind].run(&launch);
      const uint64_t* g = v[OF_GPU];
      for_gpu[kind].run(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11],
                        g[12]);
      int same = strcmp(kernels[kind].name, for_gpu[kind].name) == 0;
      for (int i = 0; i < MEMORIES; ++i)
        same &= memcmp(memories[OF_GPU][i], memories[OF_HOST][i], BYTES) == 0;
      if (!same) printf("%s%s\n", kernels[kind].name, hidden ? " with a key" : "");
      wrong += !same;
    }
  }
  return wrong != 0;
}
