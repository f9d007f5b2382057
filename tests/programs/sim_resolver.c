/* Asks the driver for functions by name, version and flavour; prints "claim: yes" or "claim: no".
 */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <stdio.h>

static void* driver;
static PFN_cuGetProcAddress_v12000 get;

static void* ask(const char* name, int version, int flags) {
  void* found = NULL;
  return get(name, &found, version, (cuuint64_t)flags, NULL) == CUDA_SUCCESS ? found : NULL;
}
static int status(const char* name, int version) {
  void* found = NULL;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
  get(name, &found, version, 0, &result);
  return (int)result;
}
static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

int main(void) {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return puts(dlerror()), 1;
  get = (PFN_cuGetProcAddress_v12000)dlsym(driver, "cuGetProcAddress_v2");
#define SYMBOL(name) dlsym(driver, name)
  claim("cuMemPrefetchAsync of 8.0 is the first form",
        ask("cuMemPrefetchAsync", 8000, 0) == SYMBOL("cuMemPrefetchAsync"));
  claim("cuMemPrefetchAsync of 12.1 is the first form",
        ask("cuMemPrefetchAsync", 12010, 0) == SYMBOL("cuMemPrefetchAsync"));
  claim("cuMemPrefetchAsync of 12.2 is the second form",
        ask("cuMemPrefetchAsync", 12020, 0) == SYMBOL("cuMemPrefetchAsync_v2"));
  claim("cuMemPrefetchAsync of 13.0 per thread",
        ask("cuMemPrefetchAsync", 13000, 2) == SYMBOL("cuMemPrefetchAsync_v2_ptsz"));
  claim("cuMemAlloc of 2.0", ask("cuMemAlloc", 2000, 0) == SYMBOL("cuMemAlloc"));
  claim("cuMemAlloc of 12.0", ask("cuMemAlloc", 12000, 0) == SYMBOL("cuMemAlloc_v2"));
  claim("cuMemAlloc per thread is the same",
        ask("cuMemAlloc", 12000, 2) == SYMBOL("cuMemAlloc_v2"));
  claim("cuMemcpyHtoD per thread", ask("cuMemcpyHtoD", 12000, 2) == SYMBOL("cuMemcpyHtoD_v2_ptds"));
  claim("cuLaunchKernel", ask("cuLaunchKernel", 12000, 0) == SYMBOL("cuLaunchKernel"));
  claim("cuLaunchKernel per thread",
        ask("cuLaunchKernel", 12000, 2) == SYMBOL("cuLaunchKernel_ptsz"));
  claim("cuStreamGetCaptureInfo of 10.1",
        ask("cuStreamGetCaptureInfo", 10010, 0) == SYMBOL("cuStreamGetCaptureInfo"));
  claim("cuStreamGetCaptureInfo of 12.3",
        ask("cuStreamGetCaptureInfo", 12030, 0) == SYMBOL("cuStreamGetCaptureInfo_v3"));
  claim("cuGraphInstantiate of 12.0 is the one with flags",
        ask("cuGraphInstantiate", 12000, 0) == SYMBOL("cuGraphInstantiateWithFlags"));
  claim("cuCtxCreate of 13.0", ask("cuCtxCreate", 13000, 0) == SYMBOL("cuCtxCreate_v4"));
  claim("cuGetProcAddress itself",
        ask("cuGetProcAddress", 12000, 0) == SYMBOL("cuGetProcAddress_v2"));
  claim("a version from before the function",
        status("cuMemPrefetchAsync", 7000) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  claim("the empty name is tolerated",
        ask("", 0, 0) == NULL && status("", 0) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  claim("a name that is not one", ask("cuFoo", 13000, 0) == NULL);
  claim("a stub is found too", ask("cuTexObjectCreate", 13000, 0) == SYMBOL("cuTexObjectCreate"));
  return 0;
}
