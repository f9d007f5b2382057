/* Launches a kernel with POINTERS pointer arguments LAUNCHES times from each of THREADS threads,
 * prints nanoseconds per launch (the best round, averaged over the threads). Launches come in
 * bursts of 500 with a pause of 2 ms, as no GPU takes launches back to back for long: so the daemon
 * keeps up, and each burst pays for waking it. The memory is PyTorch-like: 64 allocations of 20
 * MiB, blocks inside them. Usage: hook_cost POINTERS LAUNCHES THREADS ROUNDS. With POINTERS > 16
 * they travel in one struct, as in a foreach launch.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int (*launch_t)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        void*, void**, void**);
typedef void (*report_t)(void*, int64_t, size_t, size_t, int);

enum { SEGMENTS = 64, SEGMENT = 20 << 20, BLOCK = 3 << 20, DISTINCT = 16, BURST = 500 };

static void *library, *context;
static launch_t launch;
static uint64_t segments[SEGMENTS];
static int pointers, launches, threads, rounds;
static void* functions[DISTINCT];
static pthread_barrier_t barrier;

static void* must(const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "%s not found\n", name);
    exit(1);
  }
  return found;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void* work(void* result) {
  void* stream;
  ((int (*)(void*))must("cuCtxSetCurrent"))(context);
  ((int (*)(void**, unsigned))must("cuStreamCreate"))(&stream, 1);
  static __thread uint64_t values[DISTINCT][512];
  static __thread void* arguments[DISTINCT][512];
  for (int f = 0; f < DISTINCT; ++f) {
    for (int i = 0; i < pointers; ++i) {
      values[f][i] = segments[(f * 7 + i) % SEGMENTS] + (uint64_t)((f + i) % 6) * BLOCK + 512;
      arguments[f][i] = &values[f][pointers > 16 ? 0 : i];
    }
  }
  double best = 1e18;
  for (int round = 0; round < rounds; ++round) {
    double took = 0;
    for (int burst = 0; burst < launches / BURST; ++burst) {
      pthread_barrier_wait(&barrier);
      const double start = now();
      for (int i = 0; i < BURST; ++i) {
        const int f = i % DISTINCT;
        launch(functions[f], 64, 1, 1, 256, 1, 1, 0, stream, arguments[f], NULL);
      }
      took += now() - start;
      usleep(2000);
    }
    took /= launches / BURST * BURST;
    if (took < best) best = took;
  }
  *(double*)result = best;
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  pointers = atoi(argv[1]);
  launches = atoi(argv[2]);
  threads = atoi(argv[3]);
  rounds = atoi(argv[4]);
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  ((int (*)(unsigned))must("cuInit"))(0);
  ((int (*)(void**, int))must("cuDevicePrimaryCtxRetain"))(&context, 0);
  ((int (*)(void*))must("cuCtxSetCurrent"))(context);
  launch = (launch_t)must("cuLaunchKernel");
  report_t report =
      (report_t)dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  for (int i = 0; i < SEGMENTS; ++i) {
    ((int (*)(uint64_t*, size_t))must("cuMemAlloc_v2"))(&segments[i], SEGMENT);
    for (int block = 0; report && block < 6; ++block)
      report((void*)(segments[i] + (uint64_t)block * BLOCK), BLOCK, 0, 0, 1);
  }
  void* module;
  ((int (*)(void**, const void*))must("cuModuleLoadData"))(&module, "");
  for (int f = 0; f < DISTINCT; ++f) {
    char name[128];
    int length = snprintf(name, sizeof name, "kernel%d", f);
    if (pointers > 16) {
      snprintf(name + length, sizeof name - (size_t)length, ":%d", 8 * pointers);
    } else {
      for (int i = 0; i < pointers; ++i)
        length += snprintf(name + length, sizeof name - (size_t)length, "%s8", i ? "," : ":");
    }
    ((int (*)(void**, void*, const char*))must("cuModuleGetFunction"))(&functions[f], module, name);
  }
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  pthread_t ids[64];
  double results[64], sum = 0;
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, &results[i]);
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    sum += results[i];
  }
  printf("%.2f\n", sum / threads);
  return 0;
}
