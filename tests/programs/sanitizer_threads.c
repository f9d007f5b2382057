/* sanitizer_threads MODULE THREADS ROUNDS FORKS: threads that do everything at once - memory of
 * several kinds, copies, kernels, events across streams, captures, host functions - on streams of
 * their own and on one that all share, and check what they computed, while the main thread asks and
 * forks. MODULE is sim_module.c. Prints "ok". */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 18, BYTES = N * 4 };

static CUcontext context;
static CUmodule module;
static CUstream shared;
static int rounds, running, wrong;

#define CHECK(call)                                                  \
  do {                                                               \
    const CUresult result = (call);                                  \
    if (result != CUDA_SUCCESS) {                                    \
      fprintf(stderr, "line %d: %s: %d\n", __LINE__, #call, result); \
      __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);                 \
    }                                                                \
  } while (0)

static void count(void* counter) { __atomic_fetch_add((int*)counter, 1, __ATOMIC_RELAXED); }

static void launch(CUfunction function, CUdeviceptr data, float value, CUstream stream) {
  unsigned long long n = N;
  void* parameters[] = {&data, &n, &value};
  CHECK(cuLaunchKernel(function, N / 256, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
}

static void through_a_graph(CUfunction scale, CUdeviceptr data, CUstream stream) {
  CUgraph graph;
  CUgraphExec exec;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  launch(scale, data, 2, stream);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuGraphExecDestroy(exec));
  CHECK(cuGraphDestroy(graph));
}

static void* work(void* number) {
  const float mine = 1 + (float)(intptr_t)number;
  int counted = 0;
  CUstream stream;
  CUevent event;
  CUfunction set, scale;
  CUdeviceptr kept;
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CHECK(cuModuleGetFunction(&set, module, "set"));
  CHECK(cuModuleGetFunction(&scale, module, "scale"));
  CHECK(cuMemAlloc(&kept, 5 << 20));
  for (int i = 0; i < rounds; ++i) {
    CUdeviceptr from, to = kept + (CUdeviceptr)(i % 4) * BYTES;
    if (i % 3 == 0) {
      CHECK(cuMemAllocAsync(&from, BYTES, stream));
    } else if (i % 3 == 1) {
      CHECK(cuMemAlloc(&from, 3 << 20));
    } else {
      CHECK(cuMemAllocManaged(&from, 2 << 20, CU_MEM_ATTACH_GLOBAL));
    }
    launch(set, from, mine, stream);
    CHECK(cuMemcpyDtoDAsync(to, from, BYTES, stream));
    CHECK(cuEventRecord(event, stream));
    CHECK(cuStreamWaitEvent(shared, event, 0));
    launch(scale, to, 3, shared);
    CHECK(cuLaunchHostFunc(shared, count, &counted));
    CHECK(cuEventRecord(event, shared));
    CHECK(cuStreamWaitEvent(stream, event, 0));
    if (i % 4 == 0) through_a_graph(scale, to, stream);
    float got[2];
    CHECK(cuMemcpyDtoHAsync(&got[0], to, 4, stream));
    CHECK(cuMemcpyDtoHAsync(&got[1], to + BYTES - 4, 4, stream));
    CHECK(cuStreamSynchronize(stream));
    const float expected = mine * 3 * (i % 4 == 0 ? 2 : 1);
    if (got[0] != expected || got[1] != expected) {
      fprintf(stderr, "round %d: %g and %g, not %g\n", i, got[0], got[1], expected);
      __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    }
    if (i % 3 == 0) {
      CHECK(cuMemFreeAsync(from, stream));
    } else {
      CHECK(cuMemFree(from));
    }
  }
  CHECK(cuStreamSynchronize(shared));
  if (counted != rounds) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
  CHECK(cuMemFree(kept));
  CHECK(cuEventDestroy(event));
  CHECK(cuStreamDestroy(stream));
  __atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int threads = atoi(argv[2]) < 16 ? atoi(argv[2]) : 16;
  int forks = atoi(argv[4]);
  rounds = atoi(argv[3]);
  running = threads;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
  pthread_t ids[16];
  for (intptr_t i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, (void*)i);
  while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0) {
    size_t left, total;
    CHECK(cuMemGetInfo(&left, &total));
    const CUresult busy = cuStreamQuery(shared);
    if (busy != CUDA_ERROR_NOT_READY) CHECK(busy);
    if (forks-- > 0) {
      int status = 0;
      const pid_t child = fork();
      if (child == 0) return 0; /* with everything that runs at an exit */
      if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "a child ended with %d\n", status);
        wrong = 1;
      }
    }
    usleep(1000);
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  CHECK(cuStreamDestroy(shared));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(0));
  if (wrong) return 1;
  puts("ok");
  return 0;
}
