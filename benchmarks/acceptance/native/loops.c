/* Launches in a loop, alone and with something else before each: from C, since a call from Python
 * costs several times what is asked for. A shared object for ctypes; the driver's functions are
 * looked up, so that nothing needs to be linked.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum { ALONE, WRITE_VALUE, EVENT, HOST_FUNCTION };

static void CUDA_CB nothing(void* data) { (void)data; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Microseconds that `count` launches take the host, and until they are done. 0, or the driver's
 * error; -1 without a driver. */
int deepum_loops(CUfunction function, CUstream stream, void** parameters, CUdeviceptr word,
                 CUevent event, int what, int count, double* host_us, double* done_us) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return -1;
  CUresult (*const launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, CUstream, void**, void**) = dlsym(driver, "cuLaunchKernel");
  CUresult (*const write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned) =
      dlsym(driver, "cuStreamWriteValue32_v2");
  CUresult (*const record)(CUevent, CUstream) = dlsym(driver, "cuEventRecord");
  CUresult (*const call)(CUstream, CUhostFn, void*) = dlsym(driver, "cuLaunchHostFunc");
  CUresult (*const wait)(CUstream) = dlsym(driver, "cuStreamSynchronize");
  if (!launch || !write_value || !record || !call || !wait) return -1;
  const double begin = now();
  for (int i = 0; i < count; ++i) {
    CUresult result = CUDA_SUCCESS;
    if (what == WRITE_VALUE) result = write_value(stream, word, 1, 0);
    if (what == EVENT) result = record(event, stream);
    if (what == HOST_FUNCTION) result = call(stream, nothing, NULL);
    if (result == CUDA_SUCCESS)
      result = launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
    if (result != CUDA_SUCCESS) return (int)result;
  }
  *host_us = now() - begin;
  const CUresult result = wait(stream);
  *done_us = now() - begin;
  return (int)result;
}
