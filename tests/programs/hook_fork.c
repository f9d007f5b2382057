/* argv[1] "after": forks 20 times in the middle of CUDA work of several threads; the children make
 * the calls they must not make and leave in three ways. "before": forks before any CUDA call; the
 * child is a CUDA program of its own. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static CUcontext context;
static CUdeviceptr kept;
static volatile int done, forks;

static int use(void) {
  CUdeviceptr address;
  CUmodule module;
  CUfunction function;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  if (cuMemAlloc(&address, 4 << 20) || cuModuleLoadData(&module, "") ||
      cuModuleGetFunction(&function, module, "k:8"))
    return 2;
  void* arguments[] = {&address};
  if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0) || cuCtxSynchronize())
    return 3;
  return cuMemFree(address) ? 4 : 0;
}

static void* busy(void* unused) {
  (void)unused;
  cuCtxSetCurrent(context);
  /* Not more allocations a fork than the fake driver, which gives no address out twice, has
   * mappings for: forks can be slow. */
  for (int allocations = 0; !done;) {
    CUdeviceptr address = kept;
    CUstream stream;
    const int allocate = allocations < 300 * (forks + 1);
    if (allocate) allocations += cuMemAlloc(&address, 3 << 20) == CUDA_SUCCESS;
    cuStreamCreate(&stream, 1);
    cuMemsetD8Async(address, 0, 100, stream);
    cuStreamDestroy(stream);
    if (allocate) cuMemFree(address);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int failures = 0, status;
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "before")) {
    const pid_t child = fork();
    if (!child) return use();
    waitpid(child, &status, 0);
    return status || use();
  }
  pthread_t threads[2];
  if (use() || cuMemAlloc(&kept, 2 << 20)) return 3;
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, busy, NULL);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (!child) {
      alarm(20);
      if (i % 4) {
        use();
        cuMemFree(kept);
        cuCtxSynchronize();
      }
      if (i % 3 == 1) _exit(0);
      if (i % 3 == 2) execl("/bin/true", "true", (char*)0);
      return 0;
    }
    waitpid(child, &status, 0);
    failures += status != 0;
    forks = i + 1;
  }
  done = 1;
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  return failures || use();
}
