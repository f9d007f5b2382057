/* argv[1] threads launch argv[2] kernels each, on streams of their own, over memory that one more
 * thread keeps allocating and freeing around them and reporting PyTorch blocks in. Exits 0 if every
 * call succeeded. */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void*, int64_t, size_t, size_t, int16_t)
    __attribute__((weak));

static CUcontext context;
static CUmodule module;
static CUdeviceptr fixed[8];
static int launches;
static volatile int done, failures;

static void check(CUresult result) {
  if (result != CUDA_SUCCESS) failures = 1;
}

static void* launcher(void* number) {
  CUstream stream;
  CUfunction functions[4];
  check(cuCtxSetCurrent(context));
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 4; ++i) {
    char name[32];
    snprintf(name, sizeof name, "k%d:8,8", i);
    check(cuModuleGetFunction(&functions[i], module, name));
  }
  for (int i = 0; i < launches; ++i) {
    CUdeviceptr a = fixed[i % 8] + (CUdeviceptr)(i % 4096),
                b = fixed[(i + (int)(intptr_t)number) % 8];
    void* arguments[] = {&a, &b};
    check(cuLaunchKernel(functions[i % 4], 1, 1, 1, 32, 1, 1, 0,
                         i % 16 ? stream : CU_STREAM_PER_THREAD, arguments, NULL));
    if (i % 1000 == 999) check(cuStreamSynchronize(stream));
  }
  check(cuStreamDestroy(stream));
  return NULL;
}

static void* allocator(void* unused) {
  (void)unused;
  check(cuCtxSetCurrent(context));
  while (!done) {
    CUdeviceptr segments[6];
    for (int i = 0; i < 6; ++i) check(cuMemAlloc(&segments[i], (size_t)(2 + 3 * i) << 20));
    for (int round = 0; _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE && round < 2;
         ++round) {
      for (int i = 0; i < 6; ++i) {
        _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
            (void*)(segments[i] + 512), round ? -(1 << 20) - (i << 20) : (1 << 20) + (i << 20), 0,
            0, 1);
      }
    }
    for (int i = 0; i < 6; ++i) check(cuMemFree(segments[i]));
    CUstream stream;
    check(cuStreamCreate(&stream, 0));
    check(cuCtxSynchronize());
    check(cuStreamDestroy(stream));
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int threads = atoi(argv[1]);
  launches = atoi(argv[2]);
  check(cuInit(0));
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxSetCurrent(context));
  check(cuModuleLoadData(&module, ""));
  for (int i = 0; i < 8; ++i) check(cuMemAlloc(&fixed[i], 6 << 20));
  pthread_t ids[64], background;
  pthread_create(&background, NULL, allocator, NULL);
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, launcher, (void*)(intptr_t)i);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  done = 1;
  pthread_join(background, NULL);
  return failures;
}
