/* A library with the CUDA runtime linked in statically, whose constructor registers a kernel, as
 * nvcc's does. SIM_MODULE names the host module with its code. kernels_work() launches it on
 * managed memory. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int limit, void* t, void* b, void* bd, void* gd, int* w);
static void scale(void) {}
static char image[1 << 20];

__attribute__((constructor)) static void registers(void) {
  const char* const path = getenv("SIM_MODULE");
  FILE* const file = path == NULL ? NULL : fopen(path, "rb");
  if (file == NULL || fread(image, 1, sizeof image, file) == 0) abort();
  fclose(file);
  void** const handle = __cudaRegisterFatBinary(image);
  __cudaRegisterFunction(handle, (const char*)scale, NULL, "scale", -1, NULL, NULL, NULL, NULL,
                         NULL);
}

__attribute__((visibility("default"))) int kernels_work(void) {
  float* values = NULL;
  unsigned long long count = 100;
  float by = 3;
  void* arguments[] = {&values, &count, &by};
  if (cudaMallocManaged((void**)&values, count * sizeof *values, cudaMemAttachGlobal) !=
      cudaSuccess)
    return 0;
  values[99] = 2;
  const dim3 one = {1, 1, 1};
  return cudaLaunchKernel((const void*)scale, one, one, arguments, 0, 0) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess && values[99] == 6 &&
         cudaFree(values) == cudaSuccess;
}
