/* The runtime API as CUDA 12 has it where CUDA 13 has it otherwise; linked with libcudart.so.12.
 * Prints "claim: yes" or "claim: no". */
#include "cuda12.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }
static int ok(cudaError_t error) { return error == cudaSuccess; }

enum { BYTES = 4 << 20, ON_HOST = -1, FULL = 1032, OLD = 728, GUARD = 64, HERE = 0x5a };

static int number(const unsigned char* at, size_t offset) {
  int value;
  memcpy(&value, at + offset, sizeof value);
  return value;
}
static int attribute(enum cudaDeviceAttr which) {
  int value = -7;
  return ok(cudaDeviceGetAttribute(&value, which, 0)) ? value : -7;
}
static int untouched(const unsigned char* at, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != HERE) return 0;
  return 1;
}

/* Offsets as in driver_types.h of CUDA 12. */
static void properties(void) {
  unsigned char p[FULL + GUARD];
  memset(p, HERE, sizeof p);
  claim("properties are told", ok(cudaGetDeviceProperties_v2((struct cudaDeviceProp*)p, 0)));
  claim("by name", strstr((const char*)p, "simulated") != NULL);
  claim("clock rate, which CUDA 13 left out", number(p, 348) == attribute(cudaDevAttrClockRate));
  claim("major, behind it", number(p, 360) == attribute(cudaDevAttrComputeCapabilityMajor));
  claim("multiprocessors",
        number(p, 388) == attribute(cudaDevAttrMultiProcessorCount) && number(p, 388) > 0);
  claim("concurrent managed access",
        number(p, 676) == attribute(cudaDevAttrConcurrentManagedAccess) && number(p, 676) == 1);
  claim("in as many bytes as CUDA 12 has for it", untouched(p + FULL, GUARD));
#ifndef NVIDIAS_HEADER
  cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp*, int);
  unsigned char old[OLD + GUARD];
  memset(old, HERE, sizeof old);
  claim("the name without a version is CUDA 11's",
        ok(cudaGetDeviceProperties((struct cudaDeviceProp*)old, 0)) && !memcmp(old, p, OLD));
  claim("in as many bytes as that had for it", untouched(old + OLD, GUARD));
#endif
}

static int last_prefetch(const void* memory) {
  int where = -7;
  return ok(cudaMemRangeGetAttribute(&where, sizeof where,
                                     cudaMemRangeAttributeLastPrefetchLocation, memory, BYTES))
             ? where
             : -7;
}
static int preferred(const void* memory) {
  int where = -7;
  return ok(cudaMemRangeGetAttribute(&where, sizeof where, cudaMemRangeAttributePreferredLocation,
                                     memory, BYTES))
             ? where
             : -7;
}

static void memory(cudaStream_t s) {
  void *managed, *device;
  claim("memory", ok(cudaMallocManaged(&managed, BYTES, 1)) && ok(cudaMalloc(&device, BYTES)) &&
                      ok(cudaMemset(managed, 7, BYTES)));
  claim("a prefetch to an ordinal",
        ok(cudaMemPrefetchAsync(managed, BYTES, 0, s)) && last_prefetch(managed) == 0);
  claim("and to cudaCpuDeviceId",
        ok(cudaMemPrefetchAsync(managed, BYTES, ON_HOST, s)) && last_prefetch(managed) == ON_HOST);
  const struct cudaMemLocation gpu = {.type = cudaMemLocationTypeDevice, .id = 0};
  claim("and to a location",
        ok(cudaMemPrefetchAsync_v2(managed, BYTES, gpu, 0, s)) && last_prefetch(managed) == 0);
  claim("advice with an ordinal",
        ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetPreferredLocation, ON_HOST)) &&
            preferred(managed) == ON_HOST);
  claim("and with a location",
        ok(cudaMemAdvise_v2(managed, BYTES, cudaMemAdviseSetPreferredLocation, gpu)) &&
            preferred(managed) == 0);
  claim("no such device", !ok(cudaMemPrefetchAsync(managed, BYTES, 99, s)));

  unsigned char a[24 + GUARD]; /* sizeof(struct cudaPointerAttributes) in CUDA 12 */
  memset(a, HERE, sizeof a);
  claim("attributes of a pointer",
        ok(cudaPointerGetAttributes((struct cudaPointerAttributes*)a, device)));
  claim("its kind", number(a, 0) == cudaMemoryTypeDevice && number(a, 4) == 0 &&
                        !memcmp(a + 8, &device, sizeof device));
  claim("and no byte more than CUDA 12 has", untouched(a + 24, GUARD));
}

static void graphs(cudaStream_t s, void* data) {
  cudaGraph_t graph;
  cudaGraphNode_t a, b, c, from[4], to[4];
  size_t count = 4;
  claim("a graph", ok(cudaGraphCreate(&graph, 0)) && ok(cudaGraphAddEmptyNode(&a, graph, NULL, 0)));
  struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeMemset};
  p.memset.dst = data, p.memset.elementSize = 4, p.memset.width = 16, p.memset.height = 1;
  claim("a node of any type", ok(cudaGraphAddNode(&b, graph, &a, 1, &p)) &&
                                  ok(cudaGraphAddEmptyNode(&c, graph, NULL, 0)));
  claim("an edge more", ok(cudaGraphAddDependencies(graph, &b, &c, 1)));
  claim("edges", ok(cudaGraphGetEdges(graph, from, to, &count)) && count == 2);
  count = 4;
  claim("edges with their data",
        ok(cudaGraphGetEdges_v2(graph, from, to, NULL, &count)) && count == 2);
  count = 4;
  claim("what a node depends on",
        ok(cudaGraphNodeGetDependencies(b, from, &count)) && count == 1 && from[0] == a);
  count = 4;
  claim("what depends on it",
        ok(cudaGraphNodeGetDependentNodes(b, to, &count)) && count == 1 && to[0] == c);
  claim("an edge less", ok(cudaGraphRemoveDependencies(graph, &b, &c, 1)) &&
                            ok(cudaGraphGetEdges(graph, NULL, NULL, &count)) && count == 1);

  enum cudaStreamCaptureStatus status;
  unsigned long long id = 0, id3 = 0;
  cudaGraph_t captured = NULL;
  const cudaGraphNode_t* tail = NULL;
  const cudaGraphEdgeData* edges;
  claim("a capture", ok(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)) &&
                         ok(cudaMemsetAsync(data, 1, 64, s)));
  claim("its state", ok(cudaStreamGetCaptureInfo_v2(s, &status, &id, &captured, &tail, &count)) &&
                         status == cudaStreamCaptureStatusActive);
  claim("and what comes next depends on", count == 1 && tail != NULL && captured != NULL);
  claim("with edge data",
        ok(cudaStreamGetCaptureInfo_v3(s, &status, &id3, NULL, NULL, &edges, &count)) &&
            id3 == id && count == 1);
#ifndef NVIDIAS_HEADER
  cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, enum cudaStreamCaptureStatus*,
                                       unsigned long long*);
  id3 = 0;
  claim("without either", ok(cudaStreamGetCaptureInfo(s, &status, &id3)) && id3 == id);
#endif
  claim("nothing from here on",
        ok(cudaStreamUpdateCaptureDependencies(s, NULL, 0, cudaStreamSetCaptureDependencies)));
  claim("at all",
        ok(cudaStreamGetCaptureInfo_v2(s, &status, &id, &captured, &tail, &count)) && count == 0);
  claim("its end", ok(cudaStreamEndCapture(s, &captured)));
}

static void the_rest(cudaStream_t s) {
  cudaEvent_t begin, end;
  float ms = -1;
  claim("events", ok(cudaEventCreate(&begin)) && ok(cudaEventCreate(&end)) &&
                      ok(cudaEventRecord(begin, s)) && ok(cudaEventRecord(end, s)));
  claim("time between them",
        ok(cudaEventSynchronize(end)) && ok(cudaEventElapsedTime_v2(&ms, begin, end)) && ms >= 0);
  claim("a wait by its first name", ok(cudaThreadSynchronize()));

  void *told = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  enum cudaDriverEntryPointQueryResult result;
  claim("an entry point of the driver",
        ok(cudaGetDriverEntryPoint("cuCtxSynchronize", &told, cudaEnableDefault, &result)) &&
            told != NULL);
  claim("in the form of CUDA 12", driver != NULL && told == dlsym(driver, "cuCtxSynchronize") &&
                                      told != dlsym(driver, "cuCtxSynchronize_v2"));
}

int main(void) {
  int version = 0;
  cudaStream_t s;
  void* data;
  claim("it is CUDA 12", ok(cudaRuntimeGetVersion(&version)) && version / 1000 == 12);
  claim("a stream", ok(cudaStreamCreate(&s)) && ok(cudaMalloc(&data, BYTES)));
  properties();
  memory(s);
  graphs(s, data);
  the_rest(s);
  return 0;
}
