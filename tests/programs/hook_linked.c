/* Linked against libcuda: calls go through the dynamic linker. Prints what it got. */
#include <cuda.h>
#include <stdio.h>

const char* fake_called(void);

int main(void) {
  CUcontext context;
  CUdeviceptr address;
  CUstream stream;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  if (cuMemAlloc(&address, 8 << 20)) return 2;
  printf("{\"alloc\": \"%s\"}\n", fake_called());
  if (cuMemsetD32(address, 0, 16)) return 3;
  printf("{\"memset\": \"%s\"}\n", fake_called());
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  if (cuMemPrefetchAsync(address, 4096, location, 0, 0)) return 4;
  printf("{\"prefetch\": \"%s\"}\n", fake_called());
  if (cuLaunchKernel(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)) return 5;
  printf("{\"launch\": \"%s\"}\n", fake_called());
  return cuMemFree(address) ? 6 : 0;
}
