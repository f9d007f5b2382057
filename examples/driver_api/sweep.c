/* Sweeps over several arrays again and again with the driver API, and checks every number at the
 * end. More arrays than the GPU holds make it a program that needs deepum:
 *
 *   gcc -O2 sweep.c -I CUDA_INCLUDE -lcuda -o sweep
 *   deepum run --device sim --gpu-memory 256MiB -- ./sweep kernels.so 8 64 4     (8 arrays of 64
 * MiB, 4 rounds)
 *
 * With a real GPU, give a cubin or PTX file that has a kernel `add` instead of kernels.so.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                              \
  do {                                           \
    CUresult result_ = (call);                   \
    if (result_ != CUDA_SUCCESS) {               \
      const char* name_ = "?";                   \
      cuGetErrorName(result_, &name_);           \
      fprintf(stderr, "%s: %s\n", #call, name_); \
      return 1;                                  \
    }                                            \
  } while (0)

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODULE [ARRAYS [MEBIBYTES [ROUNDS]]]\n", argv[0]);
    return 2;
  }
  const int arrays = argc > 2 ? atoi(argv[2]) : 8;
  const size_t bytes = (size_t)(argc > 3 ? atoi(argv[3]) : 64) << 20;
  const int rounds = argc > 4 ? atoi(argv[4]) : 4;
  uint64_t count = bytes / sizeof(uint32_t);

  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuModuleGetFunction(&add, module, "add"));

  CUdeviceptr* data = calloc((size_t)arrays, sizeof *data);
  for (int i = 0; i < arrays; i++) {
    CHECK(cuMemAlloc(&data[i], bytes));
    CHECK(cuMemsetD32(data[i], (unsigned)i, count));
  }
  for (int round = 0; round < rounds; round++) {
    CUevent begin, end;
    CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    CHECK(cuEventRecord(begin, NULL));
    for (int i = 0; i < arrays; i++) {
      uint32_t amount = (uint32_t)round + 1;
      void* parameters[] = {&data[i], &count, &amount};
      CHECK(cuLaunchKernel(add, (unsigned)((count + 255) / 256), 1, 1, 256, 1, 1, 0, NULL,
                           parameters, NULL));
    }
    CHECK(cuEventRecord(end, NULL));
    CHECK(cuEventSynchronize(end));
    float milliseconds = 0;
    CHECK(cuEventElapsedTime(&milliseconds, begin, end));
    printf("round %d: %.3f ms\n", round + 1, milliseconds);
    fflush(stdout);
    CHECK(cuEventDestroy(begin));
    CHECK(cuEventDestroy(end));
  }
  const uint32_t added = (uint32_t)(rounds * (rounds + 1) / 2);
  uint32_t* host = malloc(bytes);
  for (int i = 0; i < arrays; i++) {
    CHECK(cuMemcpyDtoH(host, data[i], bytes));
    for (uint64_t k = 0; k < count; k++) {
      if (host[k] != (uint32_t)i + added) {
        fprintf(stderr, "array %d, element %llu: %u instead of %u\n", i, (unsigned long long)k,
                host[k], (uint32_t)i + added);
        return 1;
      }
    }
    CHECK(cuMemFree(data[i]));
  }
  printf("all %d arrays are right\n", arrays);
  free(host);
  free(data);
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  return 0;
}
