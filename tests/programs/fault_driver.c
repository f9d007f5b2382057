/* A driver that fails on demand, in front of the simulated one: the shim finds it as libcuda.so.1,
 * and every function that is not here in the library behind it (libcuda-behind.so). The program's
 * own calls are not failed: those of the shim are known by their events, which are made without
 * timing, and by the moves, which the test's program never asks for.
 *
 *   FAULT_CALL    the calls that fail, with commas
 *   FAULT_RESULT  their CUresult
 *   FAULT_FROM, FAULT_TO  the first and the last call of each that fails, counted from 1; TO 0: all
 * that follow FAULT_PAUSE   milliseconds: they take so long instead, and succeed FAULT_THREAD
 * mover: only calls of the mover's thread are counted and failed; program: only those of the others
 *   FAULT_KILL    the process ends by SIGKILL at the start of this step. Steps are the calls here,
 * of the driver and of libc. FAULT_TOLD    a file to write at the end: how often each call was made
 * and was failed, and the number of steps
 */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { MOST_EVENTS = 65536 };
static _Atomic(CUevent) ours[MOST_EVENTS];
static atomic_int ours_count;
static atomic_ulong steps;

static unsigned long number(const char* name, unsigned long otherwise) {
  const char* text = getenv(name);
  return text ? strtoul(text, NULL, 10) : otherwise;
}

static void step(void) {
  static atomic_ulong deadly; /* 0: not asked yet; 1: never */
  unsigned long at = atomic_load(&deadly);
  if (at == 0) {
    at = number("FAULT_KILL", 0) + 1;
    atomic_store(&deadly, at);
  }
  if (atomic_fetch_add(&steps, 1) + 2 == at) kill(getpid(), SIGKILL);
}

struct Call {
  const char* name;
  atomic_ulong made, failed;
};

static int on_mover(void) {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return strcmp(name, "deepum-mover") == 0;
}

static int wanted(const char* name) {
  const char* list = getenv("FAULT_CALL");
  const size_t length = strlen(name);
  for (const char* at = list; at && (at = strstr(at, name)); at += length) {
    if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return 1;
  }
  return 0;
}

static CUresult fault(struct Call* call) {
  const char* thread = getenv("FAULT_THREAD");
  if (thread && on_mover() != (strcmp(thread, "mover") == 0)) return CUDA_SUCCESS;
  const unsigned long ordinal = atomic_fetch_add(&call->made, 1) + 1, last = number("FAULT_TO", 0);
  if (!wanted(call->name) || ordinal < number("FAULT_FROM", 1) || (last && ordinal > last))
    return CUDA_SUCCESS;
  atomic_fetch_add(&call->failed, 1);
  const unsigned long pause = number("FAULT_PAUSE", 0);
  if (!pause) return (CUresult)number("FAULT_RESULT", CUDA_ERROR_UNKNOWN);
  usleep((useconds_t)(1000 * pause));
  return CUDA_SUCCESS;
}

static int is_ours(CUevent event) {
  for (int i = 0; i < atomic_load(&ours_count); i++) {
    if (atomic_load(&ours[i]) == event) return 1;
  }
  return 0;
}

static void* behind(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

/* What the stand-in for CUPTI asks of the simulated driver. */
int deepum_sim_take_faults(void (*each)(void*, const void*), void* data, uint64_t* dropped) {
  int (*take)(void (*)(void*, const void*), void*, uint64_t*) = behind("deepum_sim_take_faults");
  return take(each, data, dropped);
}

/* ---- the driver's ---- */
#define CALLS(CALL)                                                                               \
  CALL(cuMemPrefetchAsync, (CUdeviceptr a, size_t b, CUdevice d, CUstream s), (a, b, d, s), 1)    \
  CALL(cuMemPrefetchAsync_v2, (CUdeviceptr a, size_t b, CUmemLocation l, unsigned f, CUstream s), \
       (a, b, l, f, s), 1)                                                                        \
  CALL(cuMemPrefetchBatchAsync,                                                                   \
       (CUdeviceptr * a, size_t* b, size_t c, CUmemLocation* l, size_t* i, size_t n,              \
        unsigned long long f, CUstream s),                                                        \
       (a, b, c, l, i, n, f, s), 1)                                                               \
  CALL(cuMemDiscardAndPrefetchBatchAsync,                                                         \
       (CUdeviceptr * a, size_t* b, size_t c, CUmemLocation* l, size_t* i, size_t n,              \
        unsigned long long f, CUstream s),                                                        \
       (a, b, c, l, i, n, f, s), 1)                                                               \
  CALL(cuMemDiscardBatchAsync,                                                                    \
       (CUdeviceptr * a, size_t* b, size_t c, unsigned long long f, CUstream s), (a, b, c, f, s), \
       1)                                                                                         \
  CALL(cuMemAdvise_v2, (CUdeviceptr a, size_t b, CUmem_advise w, CUmemLocation l), (a, b, w, l),  \
       1)                                                                                         \
  CALL(cuLaunchHostFunc, (CUstream s, CUhostFn f, void* d), (s, f, d), 1)                         \
  CALL(cuEventRecord, (CUevent e, CUstream s), (e, s), is_ours(e))                                \
  CALL(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned f), (s, e, f), is_ours(e))             \
  CALL(cuEventQuery, (CUevent e), (e), is_ours(e))                                                \
  CALL(cuEventSynchronize, (CUevent e), (e), is_ours(e))                                          \
  CALL(cuMemAllocManaged, (CUdeviceptr * a, size_t b, unsigned f), (a, b, f), 1)                  \
  CALL(cuInit, (unsigned f), (f), 0)                                                              \
  CALL(cuDevicePrimaryCtxRetain, (CUcontext * c, CUdevice d), (c, d), 0)                          \
  CALL(cuCtxSetCurrent, (CUcontext c), (c), 0)                                                    \
  CALL(cuModuleLoad, (CUmodule * m, const char* n), (m, n), 0)                                    \
  CALL(cuMemsetD32_v2, (CUdeviceptr a, unsigned v, size_t n), (a, v, n), 0)                       \
  CALL(cuMemcpyDtoH_v2, (void* h, CUdeviceptr a, size_t b), (h, a, b), 0)                         \
  CALL(cuMemFree_v2, (CUdeviceptr a), (a), 0)                                                     \
  CALL(cuCtxSynchronize, (void), (), 0)                                                           \
  CALL(cuStreamSynchronize, (CUstream s), (s), 0)                                                 \
  CALL(cuLaunchKernel,                                                                            \
       (CUfunction f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g,     \
        unsigned m, CUstream s, void** p, void** x),                                              \
       (f, a, b, c, d, e, g, m, s, p, x), 0)                                                      \
  CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice d), (d), 0)

#define DEFINE(name, parameters, arguments, failable)        \
  static struct Call call_of_##name = {#name, 0, 0};         \
  CUresult name parameters {                                 \
    static CUresult(*_Atomic next) parameters;               \
    step();                                                  \
    if (failable) {                                          \
      const CUresult result = fault(&call_of_##name);        \
      if (result != CUDA_SUCCESS) return result;             \
    }                                                        \
    if (!next) next = (CUresult(*) parameters)behind(#name); \
    return next arguments;                                   \
  }
CALLS(DEFINE)

/* An event that comes in its place is another's. */
static void forget(CUevent event) {
  for (int i = 0; i < atomic_load(&ours_count); i++) {
    if (atomic_load(&ours[i]) == event) atomic_store(&ours[i], NULL);
  }
}
CUresult cuEventDestroy_v2(CUevent event) {
  forget(event);
  return ((CUresult(*)(CUevent))behind("cuEventDestroy_v2"))(event);
}
CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }

static struct Call call_of_cuEventCreate = {"cuEventCreate", 0, 0};
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  step();
  if (flags & CU_EVENT_DISABLE_TIMING) {
    const CUresult result = fault(&call_of_cuEventCreate);
    if (result != CUDA_SUCCESS) return result;
  }
  const CUresult result = ((CUresult(*)(CUevent*, unsigned))behind("cuEventCreate"))(event, flags);
  if (result == CUDA_SUCCESS && flags & CU_EVENT_DISABLE_TIMING) {
    const int place = atomic_fetch_add(&ours_count, 1);
    if (place >= MOST_EVENTS) abort();
    atomic_store(&ours[place], *event);
  }
  return result;
}

/* The program's streams are its own business. */
static struct Call call_of_cuStreamCreate = {"cuStreamCreate", 0, 0};
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  step();
  if (on_mover()) {
    const CUresult result = fault(&call_of_cuStreamCreate);
    if (result != CUDA_SUCCESS) return result;
  }
  return ((CUresult(*)(CUstream*, unsigned))behind("cuStreamCreate"))(stream, flags);
}

/* ---- libc's, where a session begins, sleeps and ends: only steps ---- */
#define STEP(type, name, parameters, arguments)          \
  type name parameters {                                 \
    static type(*_Atomic next) parameters;               \
    step();                                              \
    if (!next) next = (type(*) parameters)behind(#name); \
    return next arguments;                               \
  }
STEP(int, memfd_create, (const char* n, unsigned f), (n, f))
STEP(int, eventfd, (unsigned v, int f), (v, f))
STEP(int, ftruncate, (int fd, off_t b), (fd, b))
STEP(int, socket, (int d, int t, int p), (d, t, p))
STEP(int, connect, (int fd, const struct sockaddr* a, socklen_t b), (fd, a, b))
STEP(ssize_t, sendmsg, (int fd, const struct msghdr* m, int f), (fd, m, f))
STEP(int, poll, (struct pollfd * f, nfds_t n, int t), (f, n, t))
STEP(int, ppoll, (struct pollfd * f, nfds_t n, const struct timespec* t, const sigset_t* m),
     (f, n, t, m))
STEP(ssize_t, recv, (int fd, void* b, size_t n, int f), (fd, b, n, f))
STEP(int, eventfd_write, (int fd, eventfd_t v), (fd, v))
STEP(int, mkdir, (const char* n, mode_t m), (n, m))
STEP(int, posix_spawn,
     (pid_t * p, const char* n, const posix_spawn_file_actions_t* f, const posix_spawnattr_t* a,
      char* const* v, char* const* e),
     (p, n, f, a, v, e))

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("FAULT_TOLD");
  FILE* file = path ? fopen(path, "w") : NULL;
  if (!file) return;
#define TELL(name, parameters, arguments, failable)                       \
  fprintf(file, "%s %lu %lu\n", #name, atomic_load(&call_of_##name.made), \
          atomic_load(&call_of_##name.failed));
  CALLS(TELL)
  TELL(cuEventCreate, , , )
  TELL(cuStreamCreate, , , )
  fprintf(file, "steps %lu 0\n", atomic_load(&steps));
  fclose(file);
}
