// benchmarks/acceptance/native/proof_kernels.cu for the CPU: one thread, and no clock.
#include <stdint.h>

struct Place {
  unsigned x;
};
static const Place blockIdx{0}, threadIdx{0};

#define __device__
#define __global__
#define asm
#define volatile(...)
#include "proof_kernels.cu"
