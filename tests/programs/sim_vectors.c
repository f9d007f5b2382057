/* A program of the driver API: adds two vectors with a host module's kernel. With -DRESOLVE it
 * dlopens the driver and asks cuGetProcAddress for everything, as runtimes do; else it is linked.
 * Prints "ok". */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define STRING(x) STRING2(x)
#define STRING2(x) #x
#define CHECK(call)                                                \
  do {                                                             \
    CUresult e = (call);                                           \
    if (e != CUDA_SUCCESS) return printf("%s: %d\n", #call, e), 1; \
  } while (0)

#ifdef RESOLVE
#include <cudaTypedefs.h>
static PFN_cuGetProcAddress_v12000 get;
static void* look(const char* name, int version) {
  void* found = NULL;
  if (get(name, &found, version, 0, NULL) != CUDA_SUCCESS) exit(2);
  return found;
}
#define USE(name, version) ((PFN_##name##_v##version)look(#name, version))
#define cuInit USE(cuInit, 2000)
#define cuDevicePrimaryCtxRetain USE(cuDevicePrimaryCtxRetain, 7000)
#define cuCtxSetCurrent USE(cuCtxSetCurrent, 4000)
#define cuModuleLoad USE(cuModuleLoad, 2000)
#define cuModuleGetFunction USE(cuModuleGetFunction, 2000)
#undef cuMemAlloc
#define cuMemAlloc USE(cuMemAlloc, 3020)
#define cuMemAllocManaged USE(cuMemAllocManaged, 6000)
#undef cuMemcpyHtoD
#define cuMemcpyHtoD USE(cuMemcpyHtoD, 3020)
#undef cuMemcpyDtoH
#define cuMemcpyDtoH USE(cuMemcpyDtoH, 3020)
#define cuLaunchKernel USE(cuLaunchKernel, 4000)
#undef cuMemFree
#define cuMemFree USE(cuMemFree, 3020)
#endif

int main(int argc, char** argv) {
  enum { N = 1 << 18 };
  static float a[N], b[N], sum[N];
  if (argc < 2) return 3;
#ifdef RESOLVE
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return puts(dlerror()), 4;
  get = (PFN_cuGetProcAddress_v12000)dlsym(driver, "cuGetProcAddress_v2");
#endif
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUdeviceptr da, db, dsum;
  unsigned long long n = N;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  CHECK(cuMemAlloc(&da, sizeof a));
  CHECK(cuMemAllocManaged(&db, sizeof b, CU_MEM_ATTACH_GLOBAL));
  CHECK(cuMemAllocManaged(&dsum, sizeof sum, CU_MEM_ATTACH_GLOBAL));
  for (int i = 0; i < N; ++i) a[i] = (float)i, b[i] = 2.0f * (float)i;
  CHECK(cuMemcpyHtoD(da, a, sizeof a));
  CHECK(cuMemcpyHtoD(db, b, sizeof b));
  void* parameters[] = {&da, &db, &dsum, &n};
  CHECK(cuLaunchKernel(add, N / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
  CHECK(cuMemcpyDtoH(sum, dsum, sizeof sum));
  for (int i = 0; i < N; ++i) {
    if (sum[i] != 3.0f * (float)i) return printf("sum[%d] = %g\n", i, sum[i]), 1;
  }
  CHECK(cuMemFree(da));
  CHECK(cuMemFree(db));
  CHECK(cuMemFree(dsum));
  puts("ok");
  return 0;
}
