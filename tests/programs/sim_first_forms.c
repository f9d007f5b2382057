/* cuMemPrefetchAsync and cuMemAdvise as CUDA 8 had them, in a program that is linked to the old
 * names. Prints "claim: yes/no". */
#include <cuda.h>
#include <stdio.h>

#undef cuMemPrefetchAsync
#undef cuMemAdvise
CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t bytes, CUdevice device, CUstream stream);
CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, CUmem_advise advice, CUdevice device);

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

static int attribute(CUdeviceptr p, CUmem_range_attribute attribute) {
  int value = -9;
  cuMemRangeGetAttribute(&value, sizeof value, attribute, p, 1 << 22);
  return value;
}

int main(void) {
  CUcontext context;
  CUdeviceptr p;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuMemAllocManaged(&p, 1 << 22, CU_MEM_ATTACH_GLOBAL))
    return 1;
  claim("no prefetch yet",
        attribute(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
  claim("prefetch to the device", cuMemPrefetchAsync(p, 1 << 22, 0, NULL) == CUDA_SUCCESS);
  claim("it is the last one", attribute(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
  claim("prefetch to the CPU", cuMemPrefetchAsync(p, 1 << 22, CU_DEVICE_CPU, NULL) == CUDA_SUCCESS);
  claim("now that is",
        attribute(p, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_CPU);
  claim("advice", cuMemAdvise(p, 1 << 22, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) ==
                      CUDA_SUCCESS);
  claim("is kept", attribute(p, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
  claim("no such device", cuMemPrefetchAsync(p, 1 << 22, 3, NULL) == CUDA_ERROR_INVALID_DEVICE);
  return cuCtxSynchronize();
}
