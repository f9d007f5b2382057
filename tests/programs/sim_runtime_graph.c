/* Graphs by the runtime API. Argument: the host module of sim_module.c. Prints "claim: yes" or
 * "claim: no". */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 256, BYTES = N * sizeof(float) };
typedef unsigned long long u64;

/* What a compiler writes for `__global__ void scale(...)` and `__device__ float table[N]`. */
void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name,
                            int limit, void* t, void* b, void* bd, void* gd, int* w);
void __cudaRegisterVar(void** handle, char* host, char* device, const char* name, int ext,
                       size_t bytes, int constant, int global);
static void scale(void) {}
static void add(void) {}
static char table[BYTES];

static float out[N], *x, *y;
static cudaStream_t s;
static int calls;

static void claim(const char* text, int holds) { printf("%s: %s\n", text, holds ? "yes" : "no"); }
static void count(void* by) { calls += *(int*)by; }

static int all(const float* values, float wanted) {
  for (int i = 0; i < N; ++i)
    if (values[i] != wanted) return 0;
  return 1;
}
/* The memory's values are all `wanted`. */
static int holds(const float* memory, float wanted) {
  float found[N];
  return cudaMemcpy(found, memory, BYTES, cudaMemcpyDeviceToHost) == cudaSuccess &&
         all(found, wanted);
}
static int launch(cudaGraphExec_t exec) {
  return cudaGraphLaunch(exec, s) == cudaSuccess && cudaStreamSynchronize(s) == cudaSuccess;
}

static int load(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END)) return 0;
  const long bytes = ftell(file);
  char* image = malloc((size_t)bytes);
  rewind(file);
  if (image == NULL || fread(image, 1, (size_t)bytes, file) != (size_t)bytes) return 0;
  fclose(file);
  void** handle = __cudaRegisterFatBinary(image);
  __cudaRegisterFunction(handle, (const char*)scale, NULL, "scale", -1, NULL, NULL, NULL, NULL,
                         NULL);
  __cudaRegisterFunction(handle, (const char*)add, NULL, "add", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(handle, table, NULL, "table", 0, BYTES, 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  return 1;
}

static struct cudaMemsetParams fill(float* memory, unsigned bits) {
  return (struct cudaMemsetParams){
      .dst = memory, .pitch = 0, .value = bits, .elementSize = 4, .width = N, .height = 1};
}

enum { ONE = 0x3f800000, TWO = 0x40000000 }; /* 1.0f, 2.0f */

static void by_hand(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t set, run, copy, host;
  u64 n = N;
  float three = 3, five = 5;
  int step = 1, leap = 10;
  void* arguments[] = {&x, &n, &three};
  void* others[] = {&x, &n, &five};
  struct cudaKernelNodeParams kernel = {
      .func = scale, .gridDim = {2, 1, 1}, .blockDim = {32, 4, 1}, .kernelParams = arguments};
  struct cudaHostNodeParams call = {count, &step};
  struct cudaMemsetParams ones = fill(x, ONE), twos = fill(x, TWO);
  claim("nodes are added",
        cudaGraphCreate(&graph, 0) == cudaSuccess &&
            cudaGraphAddMemsetNode(&set, graph, NULL, 0, &ones) == cudaSuccess &&
            cudaGraphAddKernelNode(&run, graph, &set, 1, &kernel) == cudaSuccess &&
            cudaGraphAddMemcpyNode1D(&copy, graph, &run, 1, out, x, BYTES,
                                     cudaMemcpyDeviceToHost) == cudaSuccess &&
            cudaGraphAddHostNode(&host, graph, &copy, 1, &call) == cudaSuccess);
  three = 100; /* the values were taken when the node was made */
  claim("the graph is instantiated", cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  claim("nothing ran before the launch", calls == 0 && all(out, 0));
  claim("it runs at each launch", launch(exec) && launch(exec) && all(out, 3) && calls == 2);

  struct cudaKernelNodeParams read = {0};
  claim("a kernel node is read back",
        cudaGraphKernelNodeGetParams(run, &read) == cudaSuccess && read.func == (void*)scale &&
            read.gridDim.x == 2 && read.blockDim.y == 4 && *(float*)read.kernelParams[2] == 3.0f);
  struct cudaMemsetParams filled;
  struct cudaHostNodeParams called;
  claim("so are the others", cudaGraphMemsetNodeGetParams(set, &filled) == cudaSuccess &&
                                 filled.dst == x && filled.width == N &&
                                 cudaGraphHostNodeGetParams(host, &called) == cudaSuccess &&
                                 called.fn == count && called.userData == &step);
  struct cudaMemcpy3DParms copied;
  claim("a copy says what it copies", cudaGraphMemcpyNodeGetParams(copy, &copied) == cudaSuccess &&
                                          copied.srcPtr.ptr == x && copied.dstPtr.ptr == out &&
                                          copied.extent.width == BYTES &&
                                          copied.kind == cudaMemcpyDeviceToHost);
  enum cudaGraphNodeType type;
  size_t nodes = 0, edges = 0;
  claim("nodes and edges are listed",
        cudaGraphNodeGetType(copy, &type) == cudaSuccess && type == cudaGraphNodeTypeMemcpy &&
            cudaGraphGetNodes(graph, NULL, &nodes) == cudaSuccess && nodes == 4 &&
            cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges) == cudaSuccess && edges == 3);

  kernel.kernelParams = others;
  claim("a kernel is changed in the instantiated graph",
        cudaGraphExecKernelNodeSetParams(exec, run, &kernel) == cudaSuccess && launch(exec) &&
            all(out, 5));
  claim("a memset is", cudaGraphExecMemsetNodeSetParams(exec, set, &twos) == cudaSuccess &&
                           launch(exec) && all(out, 10));
  call.userData = &leap;
  calls = 0;
  claim("a host function is", cudaGraphExecHostNodeSetParams(exec, host, &call) == cudaSuccess &&
                                  launch(exec) && calls == 10);
  out[0] = -1;
  claim("a copy is", cudaGraphExecMemcpyNodeSetParams1D(exec, copy, y, x, BYTES,
                                                        cudaMemcpyDeviceToDevice) == cudaSuccess &&
                         launch(exec) && holds(y, 10) && out[0] == -1);
  cudaGraphExec_t second;
  claim("the graph it came from is not",
        cudaGraphInstantiate(&second, graph, 0) == cudaSuccess && launch(second) && all(out, 3));
  cudaGraphExecUpdateResultInfo info;
  claim("an update brings the changes back",
        cudaGraphExecUpdate(exec, graph, &info) == cudaSuccess &&
            info.result == cudaGraphExecUpdateSuccess && cudaMemset(x, 0, BYTES) == cudaSuccess &&
            launch(exec) && all(out, 3));
  unsigned on = 1;
  out[0] = -1;
  claim("a node is switched off", cudaGraphNodeSetEnabled(exec, copy, 0) == cudaSuccess &&
                                      cudaGraphNodeGetEnabled(exec, copy, &on) == cudaSuccess &&
                                      on == 0 && launch(exec) && out[0] == -1);
  claim("wrong kinds of parameters are refused",
        cudaGraphExecKernelNodeSetParams(exec, set, &kernel) == cudaErrorInvalidValue &&
            cudaGraphAddKernelNode(&run, graph, NULL, 0, NULL) == cudaErrorInvalidValue);
  claim("all is given back",
        cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphExecDestroy(second) == cudaSuccess &&
            cudaGraphDestroy(graph) == cudaSuccess && cudaGraphDestroy(graph) != cudaSuccess);
}

/* The form that takes any node, and the one for boxes, here 2 planes of 3 rows of 16 bytes out of
 * larger ones. */
static void any_node(void) {
  cudaGraph_t graph, outer;
  cudaGraphExec_t exec;
  cudaGraphNode_t run, box, child;
  char from[4][5][32], to[2][3][16];
  u64 n = N;
  float half = 0.5f;
  void* arguments[] = {&y, &n, &half};
  for (int i = 0; i < (int)sizeof from; ++i) ((char*)from)[i] = (char)i;
  struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeKernel};
  parameters.kernel = (struct cudaKernelNodeParamsV2){
      .func = scale, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = arguments};
  claim("any kind of node is added",
        cudaGraphCreate(&graph, 0) == cudaSuccess &&
            cudaGraphAddNode(&run, graph, NULL, NULL, 0, &parameters) == cudaSuccess);
  struct cudaMemcpy3DParms copy = {.srcPtr = {from, 32, 32, 5},
                                   .srcPos = {8, 2, 1},
                                   .dstPtr = {to, 16, 16, 3},
                                   .extent = {16, 3, 2},
                                   .kind = cudaMemcpyHostToHost};
  struct cudaGraphNodeParams boxes = {.type = cudaGraphNodeTypeMemcpy};
  boxes.memcpy.copyParams = copy;
  claim("a box too", cudaGraphAddNode(&box, graph, &run, NULL, 1, &boxes) == cudaSuccess);
  claim("and a graph in a graph",
        cudaGraphCreate(&outer, 0) == cudaSuccess &&
            cudaGraphAddChildGraphNode(&child, outer, NULL, 0, graph) == cudaSuccess &&
            cudaGraphInstantiate(&exec, outer, 0) == cudaSuccess);
  int same = launch(exec) && holds(y, 5); /* it held 10 */
  for (int z = 0; z < 2; ++z)
    for (int row = 0; row < 3; ++row)
      for (int i = 0; i < 16; ++i) same &= to[z][row][i] == from[1 + z][2 + row][8 + i];
  claim("they do their work", same);
  half = 4;
  claim("a node of any kind is changed", cudaGraphNodeSetParams(run, &parameters) == cudaSuccess &&
                                             cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess &&
                                             launch(exec) && holds(y, 20));
}

static void symbols(void) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t in, back;
  float half[N / 2];
  for (int i = 0; i < N / 2; ++i) half[i] = 7;
  claim("a variable is written and read by nodes",
        cudaMemcpyToSymbol(table, out, BYTES, 0, cudaMemcpyHostToDevice) == cudaSuccess &&
            cudaGraphCreate(&graph, 0) == cudaSuccess &&
            cudaGraphAddMemcpyNodeToSymbol(&in, graph, NULL, 0, table, half, BYTES / 2, BYTES / 2,
                                           cudaMemcpyHostToDevice) == cudaSuccess &&
            cudaGraphAddMemcpyNodeFromSymbol(&back, graph, &in, 1, y, table, BYTES, 0,
                                             cudaMemcpyDeviceToDevice) == cudaSuccess &&
            cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess && launch(exec));
  float found[N];
  cudaMemcpy(found, y, BYTES, cudaMemcpyDeviceToHost);
  claim("at its offset",
        found[N / 2 - 1] == out[N / 2 - 1] && found[N / 2] == 7 && found[N - 1] == 7);
}

static void captured(void) {
  cudaStream_t other;
  cudaEvent_t fork, join;
  cudaGraph_t graph, under_way;
  cudaGraphExec_t exec;
  enum cudaStreamCaptureStatus status;
  u64 n = N, id = 0;
  float two = 2;
  void *scaled[] = {&x, &n, &two}, *added[] = {&x, &y, &y, &n};
  const dim3 one = {1, 1, 1};
  size_t nodes = 0, tail = 0;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaMemset(x, 0, BYTES);
  cudaMemset(y, 1, BYTES);
  claim("capture begins", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) == cudaSuccess);
  int made = cudaLaunchKernel(scale, one, one, scaled, 0, s) == cudaSuccess &&
             cudaEventRecord(fork, s) == cudaSuccess &&
             cudaStreamWaitEvent(other, fork, 0) == cudaSuccess &&
             cudaMemsetAsync(y, 0, BYTES, other) == cudaSuccess &&
             cudaEventRecord(join, other) == cudaSuccess &&
             cudaStreamWaitEvent(s, join, 0) == cudaSuccess &&
             cudaLaunchKernel(add, one, one, added, 0, s) == cudaSuccess;
  claim("work is captured", made);
  claim("the capture is described",
        cudaStreamGetCaptureInfo(s, &status, &id, &under_way, NULL, NULL, &tail) == cudaSuccess &&
            status == cudaStreamCaptureStatusActive && id != 0 && tail == 1);
  claim("capture ends", cudaStreamEndCapture(s, &graph) == cudaSuccess && graph == under_way &&
                            cudaGraphGetNodes(graph, NULL, &nodes) == cudaSuccess && nodes == 3);
  struct cudaKernelNodeParams read;
  cudaGraphNode_t all_nodes[3];
  nodes = 3;
  claim("a captured kernel names its function",
        cudaGraphGetNodes(graph, all_nodes, &nodes) == cudaSuccess &&
            cudaGraphKernelNodeGetParams(all_nodes[0], &read) == cudaSuccess &&
            read.func == (void*)scale);
  float ones[N];
  for (int i = 0; i < N; ++i) ones[i] = 1;
  claim("nothing ran yet", holds(x, 0));
  cudaMemcpy(x, ones, BYTES, cudaMemcpyHostToDevice);
  claim("a captured graph runs", cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess &&
                                     launch(exec) && launch(exec) && holds(x, 4) && holds(y, 4));
  void* p = NULL;
  claim("an allocation spoils a capture",
        cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) == cudaSuccess &&
            cudaMalloc(&p, 4096) == cudaErrorStreamCaptureUnsupported &&
            cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated && graph == NULL);
  claim("the error is remembered once", cudaGetLastError() == cudaErrorStreamCaptureInvalidated &&
                                            cudaGetLastError() == cudaSuccess);
}

int main(int argc, char** argv) {
  if (argc < 2 || !load(argv[1]) || cudaMalloc((void**)&x, BYTES) ||
      cudaMalloc((void**)&y, BYTES) || cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking))
    return 1;
  by_hand();
  any_node();
  symbols();
  captured();
  return 0;
}
