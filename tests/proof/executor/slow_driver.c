/* A driver in front of the simulated one in which the mover's calls take a while, so that other
 * threads of the program come in between. */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void dawdle(unsigned microseconds) {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  if (strcmp(name, "deepum-mover") == 0) usleep(microseconds);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* a, size_t* b, size_t c, CUmemLocation* l,
                                           size_t* i, size_t n, unsigned long long f, CUstream s) {
  static CUresult (*next)(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                          unsigned long long, CUstream);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "cuMemDiscardAndPrefetchBatchAsync");
  dawdle(300);
  return next(a, b, c, l, i, n, f, s);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* a, size_t* b, size_t c, unsigned long long f,
                                CUstream s) {
  static CUresult (*next)(CUdeviceptr*, size_t*, size_t, unsigned long long, CUstream);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "cuMemDiscardBatchAsync");
  dawdle(300);
  return next(a, b, c, f, s);
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned f) {
  static CUresult (*next)(CUstream, CUevent, unsigned);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "cuStreamWaitEvent");
  dawdle(30);
  return next(s, e, f);
}
