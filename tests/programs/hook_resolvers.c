/* Reaches the driver by dlopen and dlsym, by cuGetProcAddress in both versions, and asks for what
 * must not be touched. Built at -O0 and -O2. argv[1]: a library that defines cublasCreate_v2,
 * cudnnCreate, cuFancy and next_answer of its own. */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char* owner(void* address) {
  Dl_info info;
  if (!address || !dladdr(address, &info)) return "none";
  return strstr(info.dli_fname, "libdeepum")  ? "shim"
         : strstr(info.dli_fname, "libcuda")  ? "driver"
         : strstr(info.dli_fname, "libother") ? "other"
                                              : "program";
}

int main(int argc, char** argv) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library || argc < 2) return 1;
  printf("{\"dlsym_alloc\": \"%s\"", owner(dlsym(library, "cuMemAlloc_v2")));
  printf(", \"dlsym_alloc_v1\": \"%s\"", owner(dlsym(library, "cuMemAlloc")));
  printf(", \"dlsym_init\": \"%s\"", owner(dlsym(library, "cuInit")));
  printf(", \"dlsym_missing\": \"%s\"", owner(dlsym(library, "cuNoSuchThing")));
  printf(", \"error\": %d", dlerror() != NULL);

  typedef CUresult (*resolve_v2)(const char*, void**, int, cuuint64_t,
                                 CUdriverProcAddressQueryResult*);
  typedef CUresult (*resolve_v1)(const char*, void**, int, cuuint64_t);
  resolve_v2 v2 = (resolve_v2)dlsym(library, "cuGetProcAddress_v2");
  resolve_v1 v1 = (resolve_v1)dlsym(library, "cuGetProcAddress");
  void* found = NULL;
  CUdriverProcAddressQueryResult status;
  printf(", \"empty_name\": %d", v2("", &found, 0, 0, &status));
  printf(", \"null_function\": %d", v2("cuInit", NULL, 12000, 0, &status) != 0);
  v2("cuMemAlloc", &found, 12000, 0, NULL);
  printf(", \"gpa_alloc\": \"%s\"", owner(found));
  v1("cuMemAlloc", &found, 12000, 0);
  printf(", \"gpa1_alloc\": \"%s\"", owner(found));
  found = NULL;
  printf(", \"gpa_too_old\": %d", v2("cuMemAlloc", &found, 2000, 0, &status) != 0 && found == NULL);
  v2("cuInit", &found, 12000, 0, &status);
  printf(", \"gpa_init\": \"%s\"", owner(found));
  v2("cuGetProcAddress", &found, 12000, 0, &status);
  printf(", \"gpa_gpa\": %d", found == (void*)v2);
  v2("cuGetProcAddress", &found, 11030, 0, &status);
  printf(", \"gpa_gpa_v1\": %d", found == (void*)v1);
  v2("cuMemPrefetchAsync", &found, 8000, 0, &status);
  printf(", \"prefetch_8000\": %d",
         found == dlsym(library, "cuMemPrefetchAsync") && !strcmp(owner(found), "shim"));
  v2("cuMemPrefetchAsync", &found, 12020, 0, &status);
  printf(", \"prefetch_12020\": %d",
         found == dlsym(library, "cuMemPrefetchAsync_v2") && !strcmp(owner(found), "shim"));
  v2("cuLaunchKernel", &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
  printf(", \"launch_ptsz\": %d",
         found == dlsym(library, "cuLaunchKernel_ptsz") && !strcmp(owner(found), "shim"));
  v2("cuLaunchKernel", &found, 12000, 0, &status);
  printf(", \"launch\": %d",
         found == dlsym(library, "cuLaunchKernel") && !strcmp(owner(found), "shim"));
  v2("cuMemAlloc", &found, 13050, 0, &status);
  printf(", \"later_form\": \"%s\"", owner(found));
  v2("cuFutureFunction", &found, 13000, 0, &status);
  printf(", \"unknown\": \"%s\"", owner(found));

  void* other = dlopen(argv[1], RTLD_NOW);
  if (!other) return 2;
  printf(", \"cublas\": \"%s\"", owner(dlsym(other, "cublasCreate_v2")));
  printf(", \"cudnn\": \"%s\"", owner(dlsym(other, "cudnnCreate")));
  printf(", \"fancy\": \"%s\"", owner(dlsym(other, "cuFancy")));
  const char* (*next)(void) = (const char* (*)(void))dlsym(other, "next_answer");
  printf(", \"next\": \"%s\"", next());
  printf(", \"next_cu\": \"%s\"",
         owner(((void* (*)(const char*))dlsym(other, "next_of"))("cuMemAlloc_v2")));
  printf(", \"default\": %d}\n", dlsym(RTLD_DEFAULT, "printf") != NULL);
  return 0;
}
