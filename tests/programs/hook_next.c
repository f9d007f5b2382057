/* A library whose own look-ups by RTLD_NEXT must start after itself, not after the shim. */
#define _GNU_SOURCE
#include <dlfcn.h>

void cublasCreate_v2(void) {}
void cudnnCreate(void) {}
void cuFancy(void) {}
const char* which_library(void) { return "other"; }
const char* next_answer(void) {
  const char* (*next)(void) = (const char* (*)(void))dlsym(RTLD_NEXT, "which_library");
  return next ? next() : "none";
}
void* next_of(const char* name) {
  void* volatile found = dlsym(RTLD_NEXT, name);
  return found;
}
