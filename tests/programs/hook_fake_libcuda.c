/* A driver that does nothing, for what the hooks promise: version keys, variants, what is forwarded
 * and what is not. Memory is mapped but never moved, kernels are never run, and `fake_called` names
 * the function that was called last.
 *
 * Environment: FAKE_MEMORY bytes of the card (1 GiB), FAKE_FREE bytes that are free of it always
 * (all), FAKE_NO_MANAGED=1 no concurrent managed access, FAKE_OTHER_POINTERS=1 cuGetProcAddress
 * answers with addresses that are not those of the exported symbols, FAKE_SHUFFLE=1 memory at other
 * addresses, FAKE_NO_SHARING=1 a device without IPC and GPUDirect, FAKE_NOT_YET so many times
 * cuMemGetInfo has no context to answer for.
 *
 * A module is any text; a function's name may carry its parameter sizes: "add:8,8,4".
 */
#define _GNU_SOURCE
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char* volatile fake_last = "";
const char* fake_called(void) { return fake_last; }
static volatile unsigned long launches;
#define NOTE() (fake_last = __func__)
#define PLAIN(name, parameters) \
  CUresult name parameters {    \
    NOTE();                     \
    return CUDA_SUCCESS;        \
  }
#define BOTH(name, suffix, parameters) PLAIN(name, parameters) PLAIN(name##suffix, parameters)

unsigned long fake_launches(void) { return launches; }

/* ---- devices and contexts ---- */
struct CUctx_st {
  int device;
};
static struct CUctx_st primary[2] = {{0}, {1}};
static __thread CUcontext stack[8];
static __thread int depth;
static int active[2];

/* As with the real driver: a child of a process that used CUDA cannot. */
static pid_t user;
static int foreign(void) { return user && user != getpid(); }
CUresult cuInit(unsigned flags) {
  (void)flags;
  if (foreign()) return CUDA_ERROR_NOT_INITIALIZED;
  user = getpid();
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 2;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  (void)device;
  const char* text = getenv("FAKE_MEMORY");
  *bytes = text ? strtoull(text, NULL, 10) : 1ull << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      *value = getenv("FAKE_NO_MANAGED") == NULL;
      break;
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
      *value = getenv("FAKE_NO_SHARING") == NULL;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  memset(uuid, 0x10 + device, sizeof *uuid);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ++active[device];
  *context = &primary[device];
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  --active[device];
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  active[device] = 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is) {
  *flags = 0;
  *is = active[device] > 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  (void)flags;
  *context = malloc(sizeof **context);
  (*context)->device = device;
  stack[depth++] = *context;
  return CUDA_SUCCESS;
}
CUresult cuCtxDestroy_v2(CUcontext context) {
  if (depth && stack[depth - 1] == context) --depth;
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  NOTE();
  if (!depth) depth = 1;
  stack[depth - 1] = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = depth ? stack[depth - 1] : NULL;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  stack[depth++] = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  --depth;
  if (context) *context = stack[depth];
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (!depth || !stack[depth - 1]) return CUDA_ERROR_INVALID_CONTEXT;
  *device = stack[depth - 1]->device;
  return CUDA_SUCCESS;
}
PLAIN(cuCtxSynchronize, (void))

/* ---- memory ---- */
enum { MOST = 4096 };
static struct {
  char* base;
  size_t bytes;
  int managed;
} memory[MOST];
static size_t managed_total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult map(CUdeviceptr* address, size_t bytes, int managed) {
  if (foreign()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!address || !bytes) return CUDA_ERROR_INVALID_VALUE;
  const size_t block = 2u << 20;
  if (getenv("FAKE_SHUFFLE"))
    mmap(NULL, block * (1 + bytes % 7), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
         0);
  char* raw = mmap(NULL, bytes + 2 * block, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  char* base = (char*)(((size_t)raw + block - 1) & ~(block - 1));
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MOST && result; ++i) {
    if (memory[i].base) continue;
    memory[i].base = base;
    memory[i].bytes = bytes;
    memory[i].managed = managed;
    if (managed) managed_total += bytes;
    *address = (CUdeviceptr)base;
    result = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
static int find(CUdeviceptr address) {
  for (int i = 0; i < MOST; ++i) {
    if (memory[i].base && address - (CUdeviceptr)memory[i].base < memory[i].bytes) return i;
  }
  return -1;
}
size_t fake_managed_bytes(void) { return managed_total; }

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  NOTE();
  return map(address, bytes, 0);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned element) {
  NOTE();
  (void)element;
  *pitch = (width + 511) / 512 * 512;
  return map(address, *pitch * height, 0);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  NOTE();
  (void)bytes, (void)properties, (void)flags;
  *handle = 7;
  return CUDA_SUCCESS;
}
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  NOTE();
  (void)flags;
  return map(address, bytes, 1);
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  NOTE();
  (void)stream;
  return map(address, bytes, 0);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  NOTE();
  (void)stream;
  return map(address, bytes, 0);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  NOTE();
  (void)stream;
  (void)pool;
  return map(address, bytes, 0);
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  NOTE();
  if (foreign()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!address) return CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  const int i = find(address);
  const int known = i >= 0 && (CUdeviceptr)memory[i].base == address;
  if (known && memory[i].managed) managed_total -= memory[i].bytes;
  if (known) memory[i].base = NULL; /* the pages stay mapped: an address is never given out twice */
  pthread_mutex_unlock(&lock);
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  (void)stream;
  const int i = find(address);
  if (i >= 0 && memory[i].managed) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuMemFree_v2(address);
  NOTE();
  return result;
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  static int asked;
  const char* text = getenv("FAKE_NOT_YET");
  if (text && asked++ < atoi(text)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  text = getenv("FAKE_FREE");
  cuDeviceTotalMem_v2(total, 0);
  *free = text ? strtoull(text, NULL, 0) : *total;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  const int i = find(address);
  if (i < 0) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = (CUdeviceptr)memory[i].base;
  if (bytes) *bytes = memory[i].bytes;
  return CUDA_SUCCESS;
}
/* Host memory that the driver knows. */
CUdeviceptr fake_pinned(size_t bytes) {
  CUdeviceptr address = 0;
  map(&address, bytes, 0);
  return address;
}

/* ---- words that streams wait for: nothing is done that is queued, and no word is written ---- */
static CUdeviceptr words, waited_at;
static unsigned waits;
CUdeviceptr fake_words(void) { return words; }
CUdeviceptr fake_waited_at(void) { return waited_at; }
unsigned fake_waits(void) { return waits; }
CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  (void)bytes, (void)flags;
  words = (CUdeviceptr)address;
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned flags) {
  (void)flags;
  *device = (CUdeviceptr)host;
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned flags) {
  (void)stream, (void)value, (void)flags;
  waited_at = address;
  ++waits;
  return CUDA_SUCCESS;
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned flags) {
  (void)stream, (void)address, (void)value, (void)flags;
  return CUDA_SUCCESS;
}

/* Managed memory is not shared. */
static CUresult share(CUdeviceptr address) {
  const int i = find(address);
  return i < 0 || memory[i].managed || getenv("FAKE_NO_SHARING") ? CUDA_ERROR_INVALID_VALUE
                                                                 : CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const int i = find(address);
  if (i < 0 || !data) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned*)data = memory[i].managed ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned*)data = (unsigned)memory[i].managed;
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      *(void**)data = (void*)address;
      return memory[i].managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return share(address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *(size_t*)data = memory[i].bytes;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *(CUdeviceptr*)data = (CUdeviceptr)memory[i].base;
      break;
    default:
      *(int*)data = 0;
  }
  return CUDA_SUCCESS;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  NOTE();
  (void)handle;
  return share(address);
}
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                       CUmemRangeHandleType type, unsigned long long flags) {
  NOTE();
  (void)handle, (void)bytes, (void)type, (void)flags;
  return share(address) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  NOTE();
  (void)value, (void)attribute;
  return share(address);
}
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  for (unsigned i = 0; i < count; ++i) cuPointerGetAttribute(data[i], attributes[i], address);
  return CUDA_SUCCESS;
}
BOTH(cuMemPrefetchAsync, _ptsz,
     (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream))
BOTH(cuMemPrefetchAsync_v2, _ptsz,
     (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream))
PLAIN(cuMemAdvise, (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device))
PLAIN(cuMemAdvise_v2,
      (CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location))
BOTH(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void* src, size_t bytes))
BOTH(cuMemcpyDtoH_v2, _ptds, (void* dst, CUdeviceptr src, size_t bytes))
BOTH(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))
BOTH(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))
BOTH(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream))
BOTH(cuMemcpyDtoHAsync_v2, _ptsz, (void* dst, CUdeviceptr src, size_t bytes, CUstream stream))
BOTH(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* copy))
BOTH(cuMemcpyBatchAsync, _ptsz,
     (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
      CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count, size_t* fail,
      CUstream stream))
BOTH(cuMemcpyBatchAsync_v2, _ptsz,
     (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
      CUmemcpyAttributes* attributes, size_t* starts, size_t attribute_count, CUstream stream))
BOTH(cuMemsetD32_v2, _ptds, (CUdeviceptr dst, unsigned value, size_t count))
BOTH(cuMemsetD8Async, _ptsz, (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream))

/* ---- streams, events, capture ---- */
struct Launch {
  CUfunction function;
  unsigned grid, block;
  void* parameters[64];
};
struct CUgraphNode_st {
  struct Launch launch;
};
struct CUgraph_st {
  size_t count;
  struct CUgraphNode_st nodes[64];
};
struct CUstream_st {
  CUgraph capture;
};
struct CUevent_st {
  int unused;
};
static unsigned synchronised_streams;

unsigned fake_synchronised_streams(void) { return synchronised_streams; }
static CUgraph capture_of(CUstream stream) { return (size_t)stream > 2 ? stream->capture : NULL; }

/* Not from the heap: sanitizers that watch it do not see how one thread's stream becomes another's.
 */
static struct CUstream_st streams[1 << 16];
static unsigned streams_made;
static __thread CUstream ended_stream; /* the thread's next one gets its handle, as it often does */

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  (void)flags;
  CUstream again = ended_stream;
  ended_stream = NULL;
  if (!again) {
    unsigned made = __atomic_fetch_add(&streams_made, 1, __ATOMIC_RELAXED);
    if (made >= sizeof streams / sizeof streams[0]) return CUDA_ERROR_OUT_OF_MEMORY;
    again = &streams[made];
  }
  again->capture = NULL;
  *stream = again;
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
  NOTE();
  ended_stream = stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  NOTE();
  (void)stream;
  ++synchronised_streams;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  NOTE();
  (void)stream;
  return CUDA_SUCCESS;
}
PLAIN(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = capture_of(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
// Not noted: the mover's thread calls it when it starts, at any time from the program's point of
// view.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  (void)mode;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  NOTE();
  (void)mode;
  stream->capture = calloc(1, sizeof(struct CUgraph_st));
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  NOTE();
  *graph = stream->capture;
  stream->capture = NULL;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof **event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent event) {
  free(event);
  return CUDA_SUCCESS;
}
PLAIN(cuEventRecord, (CUevent event, CUstream stream))
PLAIN(cuEventQuery, (CUevent event))
PLAIN(cuEventSynchronize, (CUevent event))

/* ---- modules and launches ---- */
struct CUfunc_st {
  char name[256];
  size_t count;
  size_t offsets[16], sizes[16];
};

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  *module = malloc(1);
  (void)image;
  return CUDA_SUCCESS;
}
PLAIN(cuModuleUnload, (CUmodule module))
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  (void)module;
  CUfunction made = calloc(1, sizeof *made);
  const char* sizes = strchr(name, ':');
  snprintf(made->name, sizeof made->name, "%.*s", (int)(sizes ? sizes - name : (long)strlen(name)),
           name);
  size_t offset = 0;
  while (sizes && *sizes) {
    const size_t size = strtoull(sizes + 1, (char**)&sizes, 10);
    const size_t align = size >= 8 ? 8 : size;
    offset = (offset + align - 1) / align * align;
    made->offsets[made->count] = offset;
    made->sizes[made->count++] = size;
    offset += size;
  }
  *function = made;
  return CUDA_SUCCESS;
}
static int queries;
int fake_queries(void) { return queries; }
CUresult cuFuncGetName(const char** name, CUfunction function) {
  ++queries;
  *name = function->name;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  ++queries;
  if (index >= function->count) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->offsets[index];
  *size = function->sizes[index];
  return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned grid, unsigned block, CUstream stream,
                       void** parameters) {
  CUgraph graph = capture_of(stream);
  if (!graph) return CUDA_SUCCESS;
  struct Launch* node = &graph->nodes[graph->count++].launch;
  node->function = function;
  node->grid = grid;
  node->block = block;
  for (size_t i = 0; i < function->count; ++i) {
    node->parameters[i] = malloc(function->sizes[i]);
    memcpy(node->parameters[i], parameters[i], function->sizes[i]);
  }
  return CUDA_SUCCESS;
}
#define LAUNCH(name)                                                                              \
  CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
                unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) { \
    NOTE();                                                                                       \
    launches = launches + 1;                                                                      \
    (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;                            \
    return launch(f, gx, bx, stream, parameters);                                                 \
  }
LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
/* A driver may build one of its functions on another that it exports. */
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                   void** parameters) {
  CUresult (*exported)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, CUstream, void**, void**) = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
  return exported ? exported(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, NULL)
                  : CUDA_SUCCESS;
}
BOTH(cuLaunchKernelEx, _ptsz,
     (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra))
PLAIN(cuLaunchCooperativeKernel_ptsz,
      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
       unsigned shared, CUstream stream, void** parameters))

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  for (size_t i = 0; nodes && i < graph->count; ++i) nodes[i] = &graph->nodes[i];
  *count = graph->count;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  (void)node;
  *type = CU_GRAPH_NODE_TYPE_KERNEL;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
  memset(parameters, 0, sizeof *parameters);
  parameters->func = node->launch.function;
  parameters->gridDimX = node->launch.grid;
  parameters->gridDimY = parameters->gridDimZ = parameters->blockDimY = parameters->blockDimZ = 1;
  parameters->blockDimX = node->launch.block;
  parameters->kernelParams = node->launch.parameters;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  (void)flags;
  *exec = (CUgraphExec)graph;
  return CUDA_SUCCESS;
}
PLAIN(cuGraphExecDestroy, (CUgraphExec exec))
BOTH(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream))

/* ---- cuGetProcAddress ---- */
// A form of a later CUDA, of another signature than those that are hooked.
static CUresult later_alloc(CUdeviceptr* address, size_t bytes, void* context) {
  (void)address, (void)bytes, (void)context;
  return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult other_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, CUstream stream,
                             void** parameters, void** extra) {
  return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
#define ENTRY(name, version, symbol) {name, version, 0, (void*)symbol}
#define ENTRY_PT(name, version, symbol) {name, version, 1, (void*)symbol}
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  static const struct {
    const char* name;
    int since, per_thread;
    void* address;
  } table[] = {ENTRY("cuInit", 2000, cuInit),
               ENTRY("cuDriverGetVersion", 2020, cuDriverGetVersion),
               ENTRY("cuDeviceGet", 2000, cuDeviceGet),
               ENTRY("cuGetProcAddress", 11030, cuGetProcAddress),
               ENTRY("cuGetProcAddress", 12000, cuGetProcAddress_v2),
               ENTRY("cuMemAlloc", 3020, cuMemAlloc_v2),
               ENTRY("cuMemAlloc", 13040, later_alloc),
               ENTRY("cuMemFree", 3020, cuMemFree_v2),
               ENTRY("cuMemPrefetchAsync", 8000, cuMemPrefetchAsync),
               ENTRY("cuMemPrefetchAsync", 12020, cuMemPrefetchAsync_v2),
               ENTRY_PT("cuMemPrefetchAsync", 8000, cuMemPrefetchAsync_ptsz),
               ENTRY_PT("cuMemPrefetchAsync", 12020, cuMemPrefetchAsync_v2_ptsz),
               ENTRY("cuLaunchKernel", 4000, cuLaunchKernel),
               ENTRY_PT("cuLaunchKernel", 7000, cuLaunchKernel_ptsz),
               ENTRY("cuCtxSetCurrent", 4000, cuCtxSetCurrent),
               ENTRY("cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain),
               ENTRY("cuFutureFunction", 13000, cuInit)};
  if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = NULL;
  const int asked = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? 1 : 0;
  for (int per_thread = asked; !*function && per_thread >= 0; --per_thread) {
    int best = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
      if (strcmp(table[i].name, symbol) || table[i].since > version || table[i].since < best ||
          table[i].per_thread != per_thread)
        continue;
      best = table[i].since;
      *function = table[i].address;
    }
  }
  if (*function == (void*)cuLaunchKernel && getenv("FAKE_OTHER_POINTERS"))
    *function = (void*)other_launch;
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
