/* Something like training, on more memory than the card has, with PyTorch's reports of blocks, so
 * that dead memory can be discarded. Each round fills one activation a layer, then adds them to the
 * layers' weights in the opposite order and gives them back. Work crosses streams by events. At the
 * end every number is checked, and the ends are told:
 *
 *   fault_training MODULE ROUNDS [STREAMS [LAYERS [NEW [COUNT [TEMPORARIES]]]]]
 *
 * NEW: made anew every round are 1: the streams, 2: the activations' memory, 3: both. COUNT:
 * elements of each array that are computed. TEMPORARIES: how often an activation's block is taken
 * and given back unused before it is taken for good, in each round. FAULT_HOLD: after the rounds
 * named, in rising order (FAULT_HOLD=20,5600), it waits for a line of standard input.
 *
 * Exit codes: 0 right, 1 a call failed, 2 a number is wrong.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { MOST = 64, ARRAY = 4 << 20 };
static uint64_t count = 4096;
static CUfunction fill, add;
static CUstream streams[MOST];
static int stream_count, layers, temporaries;

/* c10::reportMemoryUsageToProfiler(void*, long, size_t, size_t, c10::Device) */
typedef struct {
  int8_t type, index;
} Device;
static void (*reports)(void*, int64_t, size_t, size_t, Device);
static size_t allocated, reserved;

static void report(CUdeviceptr address, int64_t bytes) {
  allocated = (size_t)((int64_t)allocated + bytes);
  const Device cuda = {1, 0};
  if (reports) reports((void*)address, bytes, allocated, reserved, cuda);
}

static CUdeviceptr segment(void) {
  CUdeviceptr made;
  CHECK(cuMemAlloc(&made, ARRAY));
  reserved += ARRAY;
  return made;
}

static void launch(CUfunction kernel, CUstream stream, void** parameters) {
  CHECK(cuLaunchKernel(kernel, (unsigned)((count + 255) / 256), 1, 1, 256, 1, 1, 0, stream,
                       parameters, NULL));
}

static void follow(CUstream later, CUstream earlier) {
  if (later == earlier) return;
  CUevent event;
  CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CHECK(cuEventRecord(event, earlier));
  CHECK(cuStreamWaitEvent(later, event, 0));
  CHECK(cuEventDestroy(event));
}

static uint32_t value_of(int round, int layer) {
  return (uint32_t)(round * 1000003 + layer * 7919 + 1);
}

static void train(int round, CUdeviceptr* weights, CUdeviceptr* activations) {
  for (int i = 0; i < layers; i++) {
    uint32_t value = value_of(round, i);
    for (int k = 0; k < temporaries; k++) {
      report(activations[i], ARRAY);
      report(activations[i], -(int64_t)ARRAY);
    }
    report(activations[i], ARRAY);
    void* parameters[] = {&count, &activations[i], &value};
    launch(fill, streams[i % stream_count], parameters);
  }
  for (int i = layers - 1; i >= 0; i--) {
    CUstream to = streams[(i + 1) % stream_count];
    follow(to, streams[i % stream_count]);
    void* parameters[] = {&count, &weights[i], &activations[i]};
    launch(add, to, parameters);
    follow(streams[i % stream_count], to); /* whoever fills it next comes later */
    report(activations[i], -(int64_t)ARRAY);
  }
  if (round % 2) CHECK(cuCtxSynchronize());
}

static void hold(int round) {
  static const char* next;
  if (!next) next = getenv("FAULT_HOLD");
  if (!next || atoi(next) != round) return;
  while (*next && *next != ',') next++;
  next += *next == ',';
  for (int c = getchar(); c != '\n' && c != EOF;) c = getchar();
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[2]) : 8;
  stream_count = argc > 3 ? atoi(argv[3]) : 1;
  layers = argc > 4 ? atoi(argv[4]) : 6;
  const int anew = argc > 5 ? atoi(argv[5]) : 0;
  if (argc > 6) count = strtoull(argv[6], NULL, 10);
  temporaries = argc > 7 ? atoi(argv[7]) : 0;
  const uint64_t stride = ARRAY / sizeof(uint32_t) / count;
  *(void**)&reports = dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

  CUdevice device;
  CUcontext context;
  CUmodule module;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoad(&module, argv[1]));
  CHECK(cuModuleGetFunction(&fill, module, "fill"));
  CHECK(cuModuleGetFunction(&add, module, "add"));
  for (int i = 0; i < stream_count; i++) CHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));

  CUdeviceptr weights[MOST], activations[MOST];
  for (int i = 0; i < layers; i++) {
    weights[i] = segment();
    report(weights[i], ARRAY);
    CHECK(cuMemsetD32(weights[i], 0, ARRAY / sizeof(uint32_t)));
    activations[i] = segment();
  }
  CHECK(cuCtxSynchronize()); /* the streams do not wait for the default one */
  for (int round = 0; round < rounds; round++) {
    train(round, weights, activations);
    printf("round %d\n", round + 1);
    fflush(stdout);
    hold(round + 1);
    for (int i = 0; anew & 1 && i < stream_count; i++) {
      CUstream made;
      CHECK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
      for (int k = 0; k < stream_count; k++) follow(made, streams[k]);
      CHECK(cuStreamDestroy(streams[i]));
      streams[i] = made;
    }
    for (int i = 0; anew & 2 && i < layers; i++) {
      CHECK(cuMemFree(activations[i]));
      reserved -= ARRAY;
      activations[i] = segment();
    }
  }
  CHECK(cuCtxSynchronize());
  int wrong = 0;
  uint32_t* host = malloc(ARRAY);
  for (int i = 0; i < layers; i++) {
    uint32_t sum = 0;
    for (int round = 0; round < rounds; round++) sum += value_of(round, i);
    CHECK(cuMemcpyDtoH(host, weights[i], ARRAY));
    for (uint64_t k = 0; k < count; k++) {
      if (host[k * stride] == sum + (uint32_t)k * (uint32_t)rounds) continue;
      fprintf(stderr, "layer %d, element %llu: %u instead of %u\n", i, (unsigned long long)k,
              host[k], sum + (uint32_t)k * (uint32_t)rounds);
      wrong = 1;
      break;
    }
    CHECK(cuMemFree(weights[i]));
    CHECK(cuMemFree(activations[i]));
  }
  free(host);
  if (wrong) return 2;
  printf("all %d layers are right\n", layers);
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  return 0;
}
