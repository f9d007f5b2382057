/* Host functions on the simulated GPU. Prints "claim: yes" or "claim: no". */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { N = 1024 };

static volatile int stage, other_called;
static CUcontext context;
static float* seen_by_function;
static float seen;
static CUresult inside;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }

static void note(void* argument) {
  seen = seen_by_function[N - 1];
  CUdeviceptr p;
  inside = cuMemAlloc(&p, 16);
  stage = *(int*)argument;
}

/* Blocks until another thread has called the driver. */
static void* other(void* unused) {
  (void)unused;
  size_t all, left;
  cuCtxSetCurrent(context);
  cuMemGetInfo(&left, &all);
  pthread_mutex_lock(&mutex);
  other_called = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  return NULL;
}
static void wait_for_other(void* argument) {
  pthread_t* thread = argument;
  pthread_create(thread, NULL, other, NULL);
  pthread_mutex_lock(&mutex);
  while (!other_called) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}
static void signal_host(void* unused) {
  (void)unused;
  pthread_mutex_lock(&mutex);
  stage = 99;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
}
static void CUDA_CB callback(CUstream stream, CUresult status, void* argument) {
  (void)stream;
  stage = status == CUDA_SUCCESS ? *(int*)argument : -1;
}

static void launch(CUfunction f, CUstream s, CUdeviceptr p, float value) {
  unsigned long long n = N;
  void* parameters[] = {&p, &n, &value};
  cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL);
}

int main(int argc, char** argv) {
  CUmodule module;
  CUfunction set, scale;
  CUstream s;
  CUdeviceptr p;
  pthread_t thread;
  int one = 1, two = 2;
  if (argc < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuModuleLoad(&module, argv[1]) || cuModuleGetFunction(&set, module, "set") ||
      cuModuleGetFunction(&scale, module, "scale") ||
      cuMemAllocManaged(&p, N * sizeof(float), CU_MEM_ATTACH_GLOBAL) ||
      cuStreamCreate(&s, CU_STREAM_NON_BLOCKING))
    return 1;
  seen_by_function = (float*)p;

  launch(set, s, p, 3.0f);
  cuLaunchHostFunc(s, note, &one);
  launch(scale, s, p, 2.0f);
  cuStreamSynchronize(s);
  claim("a host function runs", stage == 1);
  claim("it sees what came before it, not what comes after", seen == 3.0f);
  claim("it may not call the driver", inside == CUDA_ERROR_NOT_PERMITTED);
  claim("what comes after it runs", ((float*)p)[0] == 6.0f);

  cuStreamAddCallback(s, callback, &two, 0);
  cuStreamSynchronize(s);
  claim("a callback runs", stage == 2);

  cuLaunchHostFunc(s, wait_for_other, &thread);
  cuStreamSynchronize(s);
  pthread_join(thread, NULL);
  claim("other threads call the driver while a host function runs", other_called);

  launch(set, s, p, 4.0f);
  cuLaunchHostFunc(s, signal_host, NULL);
  pthread_mutex_lock(&mutex);
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 20;
  int late = 0;
  while (stage != 99 && !late) late = pthread_cond_timedwait(&changed, &mutex, &deadline) != 0;
  pthread_mutex_unlock(&mutex);
  claim("the program may wait for its host function without calling the driver", stage == 99);
  claim("and finds the work before it done", ((float*)p)[0] == 4.0f);
  cuCtxSynchronize();
  return 0;
}
