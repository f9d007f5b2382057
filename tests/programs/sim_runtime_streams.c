/* Which stream "stream 0" is. Compiled as it is, and with CUDA_API_PER_THREAD_DEFAULT_STREAM, when
 * the headers rename the functions to their _ptsz and _ptds forms. Prints "claim: yes" or "claim:
 * no". */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
enum { OWN = 1 };
#else
enum { OWN = 0 };
#endif
enum { BYTES = 4096 };

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

static void* id_of_stream_0(void* id) { return cudaStreamGetId(0, id) == cudaSuccess ? id : NULL; }

static atomic_int opened, held;
static void hold(void* unused) {
  (void)unused;
  held = 1;
  for (int i = 0; i < 10000 && !opened; ++i) usleep(1000);
}

/* Uses stream 0 for a copy, a memset and back, while the other thread's stream 0 stands still. */
static void* work(void* result) {
  char from[BYTES], to[BYTES];
  char *p = NULL, *q = NULL;
  memset(from, 5, BYTES);
  const int done = cudaMalloc((void**)&p, BYTES) == cudaSuccess &&
                   cudaMalloc((void**)&q, BYTES) == cudaSuccess &&
                   cudaMemcpyAsync(p, from, BYTES, cudaMemcpyHostToDevice, 0) == cudaSuccess &&
                   cudaMemsetAsync(p, 6, BYTES / 2, 0) == cudaSuccess &&
                   cudaMemcpyAsync(q, p, BYTES, cudaMemcpyDeviceToDevice, 0) == cudaSuccess &&
                   cudaStreamSynchronize(0) == cudaSuccess && cudaStreamQuery(0) == cudaSuccess &&
                   cudaMemcpy(to, q, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess;
  *(int*)result = done && to[0] == 6 && to[BYTES - 1] == 5;
  return NULL;
}

int main(void) {
  unsigned long long mine = 0, again = 0, another = 0, legacy = 0, per_thread = 0;
  pthread_t thread;
  claim("stream 0 has a number",
        cudaStreamGetId(0, &mine) == cudaSuccess &&
            cudaStreamGetId(cudaStreamLegacy, &legacy) == cudaSuccess &&
            cudaStreamGetId(cudaStreamPerThread, &per_thread) == cudaSuccess &&
            legacy != per_thread);
  claim("it is the one that the program was compiled for", mine == (OWN ? per_thread : legacy));
  pthread_create(&thread, NULL, id_of_stream_0, &another);
  pthread_join(thread, NULL);
  claim("threads share it or not, accordingly", another != 0 && (another == mine) == !OWN);
  cudaStreamGetId(0, &again);
  claim("it stays the same", again == mine);

  cudaGraph_t graph = NULL;
  char* p = NULL;
  cudaMalloc((void**)&p, BYTES);
  if (OWN) {
    cudaGraphExec_t exec;
    size_t nodes = 0;
    claim("a thread's own stream 0 can be captured",
          cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal) == cudaSuccess &&
              cudaMemsetAsync(p, 1, BYTES, 0) == cudaSuccess &&
              cudaStreamEndCapture(0, &graph) == cudaSuccess &&
              cudaGraphGetNodes(graph, NULL, &nodes) == cudaSuccess && nodes == 1);
    char seen = 0;
    claim("and the graph launched on it",
          cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess &&
              cudaGraphLaunch(exec, 0) == cudaSuccess &&
              cudaMemcpy(&seen, p, 1, cudaMemcpyDeviceToHost) == cudaSuccess && seen == 1);
  } else {
    claim("the legacy stream cannot be captured",
          cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal) == cudaErrorIllegalState);
  }

  void *plain = NULL, *wanted = NULL;
  CUdriverProcAddressQueryResult status;
  cudaGetDriverEntryPointByVersion("cuStreamSynchronize", &plain, CUDART_VERSION, cudaEnableDefault,
                                   NULL);
  cuGetProcAddress(
      "cuStreamSynchronize", &wanted, CUDART_VERSION,
      OWN ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
      &status);
  claim("driver functions are given out for the same stream", plain != NULL && plain == wanted);

  int done = 0;
  if (OWN) {
    cudaLaunchHostFunc(0, hold, NULL);
    for (int i = 0; i < 10000 && !held; ++i) usleep(1000);
  }
  pthread_create(&thread, NULL, work, &done);
  pthread_join(thread, NULL);
  claim("another thread works on its stream 0", done);
  if (OWN) claim("while this one's stands still", held && cudaStreamQuery(0) == cudaErrorNotReady);
  opened = 1;
  claim("all ends", cudaDeviceSynchronize() == cudaSuccess && cudaStreamQuery(0) == cudaSuccess);
  return 0;
}
