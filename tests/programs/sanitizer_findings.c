/* sanitizer_findings NAME: makes a mistake that a sanitizer is to find: "overflow" and "race" in
 * the driver or in the shim in front of it, "leak" by itself. */
#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static CUcontext context;
static size_t left, total;
static volatile size_t bytes = sizeof left; /* that memset stays a call, which the runtime sees */

static void* ask(void* unused) {
  (void)unused;
  cuCtxSetCurrent(context);
  for (int i = 0; i < 100; ++i) cuMemGetInfo(&left, &total);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
    return 2;
  if (!strcmp(argv[1], "overflow")) {
    size_t* half = malloc(sizeof(size_t) / 2);
    cuMemGetInfo(half, &total);
    free(half);
  } else if (!strcmp(argv[1], "leak")) {
    CUstream stream;
    cuStreamCreate(&stream, 0);
    for (int i = 0; i < 4; ++i) memset(malloc(1000), i, 1000);
  } else {
    pthread_t other;
    pthread_create(&other, NULL, ask, NULL);
    for (int i = 0; i < 100; ++i) memset(&left, 0, bytes);
    pthread_join(other, NULL);
  }
  return 0;
}
