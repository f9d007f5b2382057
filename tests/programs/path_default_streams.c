/* Threads that each sweep over arrays of their own on their own default stream, and check every
 * number: compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM, or without, when all of them share the
 * legacy stream. path_default_streams MODULE THREADS ARRAYS MEBIBYTES ROUNDS
 */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static CUcontext context;
static CUfunction scale;
static int arrays, rounds;
static uint64_t count;

static void* sweep(void* number) {
  CHECK(cuCtxSetCurrent(context));
  CUdeviceptr* data = calloc((size_t)arrays, sizeof *data);
  for (int i = 0; i < arrays; ++i) {
    const float first = (float)((long)number * 100 + i + 1);
    CHECK(cuMemAlloc(&data[i], count * sizeof(float)));
    uint32_t bits;
    __builtin_memcpy(&bits, &first, sizeof bits);
    CHECK(cuMemsetD32Async(data[i], bits, count, 0));
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < arrays; ++i) {
      float by = 2;
      void* parameters[] = {&data[i], &count, &by};
      CHECK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, 0, parameters, NULL));
    }
    CHECK(cuStreamSynchronize(0));
  }
  float* host = malloc(count * sizeof(float));
  for (int i = 0; i < arrays; ++i) {
    CHECK(cuMemcpyDtoHAsync(host, data[i], count * sizeof(float), 0));
    CHECK(cuStreamSynchronize(0));
    const float wanted = (float)((long)number * 100 + i + 1) * (float)(1 << rounds);
    for (uint64_t k = 0; k < count; ++k) {
      if (host[k] != wanted) {
        fprintf(stderr, "thread %ld, array %d, element %lu: %f instead of %f\n", (long)number, i,
                (unsigned long)k, host[k], wanted);
        exit(1);
      }
    }
    CHECK(cuMemFree(data[i]));
  }
  free(host);
  free(data);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int threads = atoi(argv[2]);
  arrays = atoi(argv[3]);
  count = ((uint64_t)atoi(argv[4]) << 20) / sizeof(float);
  rounds = atoi(argv[5]);
  CUmodule module;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuModuleGetFunction(&scale, module, "scale"));
  pthread_t all[16];
  for (long i = 0; i < threads; ++i) pthread_create(&all[i], NULL, sweep, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  printf("all right\n");
  return 0;
}
