/* Works on the GPU for a while, says "ready" once that is done, and ends in a way that runs no exit
 * handlers. ending MODULE WAY [ARGUMENT...]: MODULE has a kernel `add`; WAY: _exit, abort,
 * segfault, exec (of ARGUMENT), or wait (for a signal). */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                     \
  do {                                                  \
    const CUresult result_ = (call);                    \
    if (result_ != CUDA_SUCCESS) {                      \
      fprintf(stderr, "%s: %d\n", #call, (int)result_); \
      return 3;                                         \
    }                                                   \
  } while (0)

int main(int argc, char** argv) {
  if (argc < 3) return 2;
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
  uint64_t count = 8 << 20;
  uint32_t amount = 1;
  CUdeviceptr data[12];
  for (int i = 0; i < 12; i++) {
    CHECK(cuMemAlloc(&data[i], count * sizeof(uint32_t)));
    CHECK(cuMemsetD32(data[i], 0, count));
  }
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 12; i++) {
      void* parameters[] = {&data[i], &count, &amount};
      CHECK(cuLaunchKernel(add, 1024, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    }
    CHECK(cuCtxSynchronize());
  }
  puts("ready");
  fflush(stdout);
  if (strcmp(argv[2], "_exit") == 0) _exit(3);
  if (strcmp(argv[2], "abort") == 0) abort();
  if (strcmp(argv[2], "segfault") == 0) *(volatile int*)(uintptr_t)(argc - 3) = 1;
  if (strcmp(argv[2], "exec") == 0) execv(argv[3], argv + 3);
  for (;;) pause();
}
