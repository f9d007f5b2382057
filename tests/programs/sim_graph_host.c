/* A host function inside a captured graph, and an event recorded from it. Prints "claim: yes" or
 * "claim: no". */
#include <cuda.h>
#include <stdio.h>

enum { N = 256 };
static float *data, seen[4];
static int calls;

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }
static void note(void* unused) {
  (void)unused;
  if (calls < 4) seen[calls++] = data[0];
}

int main(int argc, char** argv) {
  CUcontext context;
  CUmodule module;
  CUfunction scale;
  CUstream s;
  CUdeviceptr p;
  CUgraph graph;
  CUgraphExec exec;
  CUevent event;
  if (argc < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuModuleLoad(&module, argv[1]) || cuModuleGetFunction(&scale, module, "scale") ||
      cuMemAllocManaged(&p, N * sizeof(float), CU_MEM_ATTACH_GLOBAL) ||
      cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuEventCreate(&event, CU_EVENT_DEFAULT))
    return 1;
  data = (float*)p;
  for (int i = 0; i < N; ++i) data[i] = 1.0f;
  unsigned long long n = N;
  float two = 2.0f;
  void* parameters[] = {&p, &n, &two};
  cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL);
  cuLaunchHostFunc(s, note, NULL);
  cuEventRecordWithFlags(event, s, CU_EVENT_RECORD_EXTERNAL);
  cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, s, parameters, NULL);
  claim("capture", cuStreamEndCapture(s, &graph) == CUDA_SUCCESS && calls == 0);
  two = 100.0f; /* the values were taken at the capture */
  claim("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
  cuGraphLaunch(exec, s);
  cuGraphLaunch(exec, s);
  claim("the event is recorded by the launch",
        cuEventSynchronize(event) == CUDA_SUCCESS && calls >= 1);
  cuStreamSynchronize(s);
  claim("the host function ran twice", calls == 2);
  claim("in the middle of each launch", seen[0] == 2.0f && seen[1] == 8.0f);
  claim("all kernels ran", data[N - 1] == 16.0f);
  return cuGraphExecDestroy(exec) || cuGraphDestroy(graph);
}
