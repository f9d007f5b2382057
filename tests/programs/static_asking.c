/* Asks the driver for one of its private tables, as a CUDA runtime does that is linked in
 * statically. Built as a library, too. */
#include <cuda.h>
#include <dlfcn.h>

__attribute__((visibility("default"))) int asks(void) {
  CUresult (*table)(const void**, const CUuuid*) = NULL;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const void* found = &found;
  const CUuuid id = {{1}};
  *(void**)&table = driver == NULL ? NULL : dlsym(driver, "cuGetExportTable");
  CUresult (*const start)(unsigned) =
      driver == NULL ? NULL : (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  return start != NULL && start(0) == CUDA_SUCCESS && table(&found, &id) == CUDA_ERROR_NOT_FOUND &&
         found == 0 && table(&found, &id) == CUDA_ERROR_NOT_FOUND;
}

int main(int count, char** names) {
  if (count == 1) return !asks();
  void* const library = dlopen(names[1], RTLD_NOW);
  int (*const work)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "asks");
  return work == NULL || !work();
}
