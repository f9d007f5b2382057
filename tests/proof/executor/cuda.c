/* Programs on the GPU, by the driver API. Blocks of the caching allocator are reported as PyTorch
 * reports them: under its lock, with the totals of the device after the call.
 */
#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "executor.h"

const bool backend_has_threads = true;

/* c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device): libdeepum's when
 * it is there, nobody's otherwise. */
typedef struct torch_device {
  int8_t type, index;
} torch_device;
__attribute__((weak)) void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void*, int64_t,
                                                                                 size_t, size_t,
                                                                                 torch_device);

typedef struct memory {
  uint64_t base, bytes;
  uint64_t device;
  enum { NONE, DEVICE, MANAGED, PINNED, PAGEABLE, SEGMENT, BLOCK } kind;
  bool silent; /* nobody reports it, but it counts */
} memory;

static memory memories[MOST_MEMORIES];
static struct {
  CUstream handle;
  uint64_t device;
  bool made;
} streams[MOST_STREAMS];
/* An event belongs to the device of the stream that it is recorded on. */
static CUevent events[MOST_DEVICES][MOST_EVENTS];
static uint64_t event_device[MOST_EVENTS];
static CUgraphExec graphs[MOST_GRAPHS];
static CUcontext contexts[MOST_DEVICES];
static CUfunction functions[MOST_DEVICES][KERNEL_KINDS];
static const char* kernels_path;
static pthread_mutex_t allocator = PTHREAD_MUTEX_INITIALIZER;
static uint64_t allocated[GPUS], reserved[GPUS];
static uint64_t resets;
/* Of the calling thread, if current_resets says that it still is. */
static __thread CUcontext current;
static __thread uint64_t current_resets;

static bool check(CUresult result, const operation* op, const char* call) {
  if (result == CUDA_SUCCESS) return true;
  const char* why = "?";
  cuGetErrorName(result, &why);
  return failed(op, call, why);
}
#define TRY(call)                                \
  do {                                           \
    if (!check((call), op, #call)) return false; \
  } while (0)

static CUdevice gpu_of(uint64_t device) { return (CUdevice)(device % GPUS); }

static bool begin_context(uint64_t device, const operation* op) {
  static const char* const names[KERNEL_KINDS] = {"fill",   "update", "combine",
                                                  "reduce", "gather", "sparse"};
  CUmodule module;
  if (device < GPUS) {
    TRY(cuDevicePrimaryCtxRetain(&contexts[device], gpu_of(device)));
    TRY(cuCtxSetCurrent(contexts[device]));
  } else {
    TRY(cuCtxCreate(&contexts[device], NULL, 0, gpu_of(device)));
  }
  TRY(cuModuleLoad(&module, kernels_path));
  for (int i = 0; i < KERNEL_KINDS; ++i)
    TRY(cuModuleGetFunction(&functions[device][i], module, names[i]));
  return true;
}

static bool end_context(uint64_t device, const operation* op) {
  const CUcontext context = contexts[device];
  if (context == NULL) return true;
  memset(events[device], 0, sizeof events[device]);
  contexts[device] = NULL;
  if (device < GPUS) {
    TRY(cuDevicePrimaryCtxRelease(gpu_of(device)));
  } else {
    TRY(cuCtxDestroy(context));
  }
  ++resets;
  return true;
}

static bool use(uint64_t device, const operation* op) {
  if (current == contexts[device] && current != NULL && current_resets == resets) return true;
  if (contexts[device] == NULL && !begin_context(device, op)) return false;
  TRY(cuCtxSetCurrent(contexts[device]));
  current = contexts[device];
  current_resets = resets;
  return true;
}

static bool stream_of(const operation* op, uint64_t number, CUstream* stream) {
  *stream = streams[number].handle;
  return use(streams[number].device, op);
}

bool backend_open(const char* kernels) {
  kernels_path = kernels;
  return cuInit(0) == CUDA_SUCCESS;
}

static uint64_t place(void) { return current_program.at[1]; }

cells cells_of(uint64_t number, uint64_t first, uint64_t count) {
  return (cells){(char*)(memories[number].base + first * PROOF_GRANULE + place()), PROOF_GRANULE,
                 count};
}

static void report(const memory* block, bool active) {
  const int device = gpu_of(block->device);
  if (active) allocated[device] += block->bytes;
  if (!active) allocated[device] -= block->bytes;
  if (block->silent || _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE == NULL) return;
  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
      (void*)block->base, active ? (int64_t)block->bytes : -(int64_t)block->bytes,
      allocated[device], reserved[device], (torch_device){1, (int8_t)device});
}

static bool allocate(const operation* op) {
  memory* const made = &memories[op->at[0]];
  const uint64_t device = op->code == OP_asy ? streams[op->at[1]].device : op->at[1];
  const uint64_t bytes = op->code == OP_seg ? op->at[2] : op->at[2] * PROOF_GRANULE;
  void* host = NULL;
  if (!use(device, op)) return false;
  *made = (memory){0, bytes, device, DEVICE, false};
  switch (op->code) {
    case OP_man:
      made->kind = MANAGED;
      TRY(cuMemAllocManaged((CUdeviceptr*)&made->base, bytes, CU_MEM_ATTACH_GLOBAL));
      return true;
    case OP_asy:
      TRY(cuMemAllocAsync((CUdeviceptr*)&made->base, bytes, streams[op->at[1]].handle));
      return true;
    case OP_pin:
      made->kind = PINNED;
      TRY(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE));
      made->base = (uint64_t)host;
      return true;
    case OP_hst:
      made->kind = PAGEABLE;
      made->base = (uint64_t)malloc(bytes);
      return made->base != 0 || failed(op, "malloc", "out of memory");
    default:
      if (op->code == OP_seg && op->at[3]) {
        TRY(cuMemAllocManaged((CUdeviceptr*)&made->base, bytes, CU_MEM_ATTACH_GLOBAL));
      } else {
        TRY(cuMemAlloc((CUdeviceptr*)&made->base, bytes));
      }
      if (op->code == OP_seg) {
        made->kind = SEGMENT;
        pthread_mutex_lock(&allocator);
        reserved[gpu_of(device)] += bytes;
        pthread_mutex_unlock(&allocator);
      }
      return true;
  }
}

static bool release(const operation* op) {
  memory* const gone = &memories[op->at[0]];
  if (!use(gone->device, op)) return false;
  const memory was = *gone;
  gone->kind = NONE;
  if (op->code == OP_fra) {
    TRY(cuMemFreeAsync(was.base, streams[op->at[1]].handle));
  } else if (was.kind == PINNED) {
    TRY(cuMemFreeHost((void*)was.base));
  } else if (was.kind == PAGEABLE) {
    free((void*)was.base);
  } else {
    TRY(cuMemFree(was.base));
    if (was.kind == SEGMENT) {
      pthread_mutex_lock(&allocator);
      reserved[gpu_of(was.device)] -= was.bytes;
      pthread_mutex_unlock(&allocator);
    }
  }
  return true;
}

static bool hand_out(const operation* op) {
  const memory* const segment = &memories[op->at[1]];
  memory* const block = &memories[op->at[0]];
  *block = (memory){segment->base + op->at[2], op->at[3], segment->device, BLOCK, op->at[5]};
  pthread_mutex_lock(&allocator);
  report(block, true);
  pthread_mutex_unlock(&allocator);
  return true;
}

static bool take_back(const operation* op) {
  pthread_mutex_lock(&allocator);
  report(&memories[op->at[0]], false);
  memories[op->at[0]].kind = NONE;
  pthread_mutex_unlock(&allocator);
  return true;
}

static bool launch(const operation* op) {
  const uint64_t* const a = op->at;
  uint64_t values[13] = {0};
  void* parameters[13];
  const uint64_t first_address = memories[a[2]].base + (a[3] - (a[13] ? a[3] : 0)) * PROOF_GRANULE;
  const uint64_t key = a[14] == 0   ? 0
                       : a[14] == 1 ? PROOF_KEY
                                    : first_address ^ memories[a[14] - 2].base;
  CUstream stream;
  if (!stream_of(op, a[1], &stream)) return false;
  for (int i = 0; i < 3; ++i) {
    const uint64_t *const range = &a[2 + 3 * i], first = a[13] ? range[1] : 0;
    if (range[2] == 0) continue;
    values[3 * i] = (memories[range[0]].base + (range[1] - first) * PROOF_GRANULE) ^ key;
    values[3 * i + 1] = first;
    values[3 * i + 2] = range[2];
  }
  values[9] = a[11];
  values[10] = place();
  values[11] = a[12];
  values[12] = key;
  for (int i = 0; i < 13; ++i) parameters[i] = &values[i];
  TRY(cuLaunchKernel(functions[streams[a[1]].device][a[0]], (unsigned)a[4], 1, 1, 256, 1, 1, 0,
                     stream, parameters, NULL));
  return true;
}

static bool on_host(const memory* of) { return of->kind == PINNED || of->kind == PAGEABLE; }

static bool copy_cells(const operation* op, CUstream stream) {
  const memory *const to = &memories[op->at[2]], *const from = &memories[op->at[4]];
  CUDA_MEMCPY2D box = {0};
  box.srcMemoryType = on_host(from) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  box.dstMemoryType = on_host(to) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from->base + op->at[5] * PROOF_GRANULE + place();
  box.dstDevice = to->base + op->at[3] * PROOF_GRANULE + place();
  box.srcHost = (const void*)box.srcDevice;
  box.dstHost = (void*)box.dstDevice;
  box.srcPitch = box.dstPitch = PROOF_GRANULE;
  box.WidthInBytes = sizeof(uint64_t);
  box.Height = op->at[6];
  TRY(cuMemcpy2DAsync(&box, stream));
  return true;
}

static bool copy(const operation* op) {
  const memory *const to = &memories[op->at[2]], *const from = &memories[op->at[4]];
  const uint64_t d = to->base + op->at[3] * PROOF_GRANULE,
                 s = from->base + op->at[5] * PROOF_GRANULE, bytes = op->at[6] * PROOF_GRANULE;
  CUstream stream;
  if (!stream_of(op, op->at[1], &stream)) return false;
  switch (op->at[0]) {
    case COPY_TYPED:
      if (on_host(to) && !on_host(from)) {
        TRY(cuMemcpyDtoHAsync((void*)d, s, bytes, stream));
      } else if (!on_host(to) && on_host(from)) {
        TRY(cuMemcpyHtoDAsync(d, (const void*)s, bytes, stream));
      } else {
        TRY(cuMemcpyDtoDAsync(d, s, bytes, stream));
      }
      return true;
    case COPY_SYNCHRONOUS:
      TRY(cuMemcpy(d, s, bytes));
      return true;
    case COPY_CELLS:
      return copy_cells(op, stream);
    case COPY_PEER:
      TRY(cuMemcpyPeerAsync(d, contexts[to->device], s, contexts[from->device], bytes, stream));
      return true;
    default:
      TRY(cuMemcpyAsync(d, s, bytes, stream));
      return true;
  }
}

static bool set(const operation* op) {
  const uint64_t to = memories[op->at[2]].base + op->at[3] * PROOF_GRANULE, count = op->at[4];
  const unsigned value = (unsigned)op->at[5];
  CUstream stream;
  if (!stream_of(op, op->at[1], &stream)) return false;
  if (op->at[0] == SET_CELLS) {
    TRY(cuMemsetD2D32Async(to + place(), PROOF_GRANULE, value, 2, count, stream));
  } else if (op->at[0] == SET_D32_SYNCHRONOUS) {
    TRY(cuMemsetD32(to, value, count * PROOF_GRANULE / 4));
  } else {
    TRY(cuMemsetD32Async(to, value, count * PROOF_GRANULE / 4, stream));
  }
  return true;
}

static bool record(const operation* op) {
  CUstream stream;
  if (!stream_of(op, op->at[1], &stream)) return false;
  event_device[op->at[0]] = streams[op->at[1]].device;
  CUevent* const event = &events[event_device[op->at[0]]][op->at[0]];
  if (*event == NULL) TRY(cuEventCreate(event, CU_EVENT_DISABLE_TIMING));
  TRY(cuEventRecord(*event, stream));
  return true;
}

static bool wait_for_event(const operation* op) {
  const uint64_t number = op->at[op->code == OP_wai ? 1 : 0];
  const CUevent event = events[event_device[number]][number];
  CUstream stream;
  if (op->code == OP_wai) {
    if (!stream_of(op, op->at[0], &stream)) return false;
    TRY(cuStreamWaitEvent(stream, event, 0));
    return true;
  }
  if (!use(event_device[number], op)) return false;
  if (op->code == OP_esy) {
    TRY(cuEventSynchronize(event));
    return true;
  }
  /* To yield after each query would be to wait that often for all else that a busy machine runs. */
  for (unsigned queries = 1;; ++queries) {
    const CUresult answer = cuEventQuery(event);
    if (answer != CUDA_ERROR_NOT_READY) return check(answer, op, "cuEventQuery");
    if (queries % 64 == 0) sched_yield();
  }
}

/* What streams write and wait for in place of an event: a counter each. */
static uint32_t* values;

static bool value(const operation* op) {
  const bool writes = op->code == OP_wv;
  CUstream stream;
  if (!stream_of(op, op->at[writes ? 1 : 0], &stream)) return false;
  if (values == NULL) {
    TRY(cuMemHostAlloc((void**)&values, MOST_EVENTS * sizeof *values,
                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    memset(values, 0, MOST_EVENTS * sizeof *values);
  }
  const CUdeviceptr at = (CUdeviceptr)&values[op->at[writes ? 0 : 1]];
  if (writes) {
    TRY(cuStreamWriteValue32(stream, at, (cuuint32_t)op->at[2], CU_STREAM_WRITE_VALUE_DEFAULT));
  } else {
    TRY(cuStreamWaitValue32(stream, at, (cuuint32_t)op->at[2], CU_STREAM_WAIT_VALUE_GEQ));
  }
  return true;
}

typedef struct host_write {
  cells to;
  uint64_t salt;
} host_write;

static void CUDA_CB write_on_host(void* given) {
  host_write* const write = given;
  const cells none = {NULL, 0, 0};
  compute(KERNEL_FILL, write->to, none, none, write->salt);
  free(write);
}

static bool host_function(const operation* op) {
  CUstream stream;
  host_write* const write = malloc(sizeof *write);
  if (write == NULL || !stream_of(op, op->at[0], &stream))
    return failed(op, "malloc", "out of memory");
  *write = (host_write){cells_of(op->at[1], op->at[2], op->at[3]), op->at[4]};
  TRY(cuLaunchHostFunc(stream, write_on_host, write));
  return true;
}

enum { MOST_CHILDREN = 64 };
static pid_t children[MOST_CHILDREN];
static int child_count;

/* Tensors that a child got from its parent are freed when it collects its garbage, and their blocks
 * are handed out to it again. */
static void report_in_child(void) {
  for (uint64_t i = 0; i < MOST_MEMORIES; ++i) {
    if (memories[i].kind != BLOCK) continue;
    report(&memories[i], false);
    report(&memories[i], true);
  }
}

static bool fork_child(const operation* op) {
  if (child_count == MOST_CHILDREN) return true;
  const pid_t child = fork();
  if (child < 0) return failed(op, "fork", strerror(errno));
  if (child > 0) {
    children[child_count++] = child;
    return true;
  }
  alarm(30); /* one that hangs fails the program */
  if (op->at[0] == CHILD_REPORTS) report_in_child();
  if (op->at[0] >= CHILD_STAYS) usleep((useconds_t)op->at[1]);
  if (op->at[0] == CHILD_EXITS) exit(0);
  _exit(0);
}

static bool await_children(const operation* op) {
  bool well = true;
  for (; child_count > 0; --child_count) {
    int status = 0;
    well = waitpid(children[child_count - 1], &status, 0) > 0 && status == 0 && well;
  }
  return well || failed(op, "waitpid", "a child did not end well");
}

static bool short_context(const operation* op) {
  CUcontext context;
  TRY(cuCtxCreate(&context, NULL, 0, gpu_of(op->at[0])));
  TRY(cuCtxDestroy(context));
  ++resets; /* which one is current now is the driver's */
  return true;
}

static bool graph(const operation* op) {
  CUstream stream = NULL;
  CUgraph made;
  if (op->code == OP_gd) {
    TRY(cuGraphExecDestroy(graphs[op->at[0]]));
    graphs[op->at[0]] = NULL;
    return true;
  }
  if (!stream_of(op, op->at[1], &stream)) return false;
  if (op->code == OP_gb) {
    TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  } else if (op->code == OP_ge) {
    TRY(cuStreamEndCapture(stream, &made));
    TRY(cuGraphInstantiate(&graphs[op->at[0]], made, 0));
    TRY(cuGraphDestroy(made));
  } else {
    TRY(cuGraphLaunch(graphs[op->at[0]], stream));
  }
  return true;
}

static CUmemLocation location(uint64_t device) {
  return (CUmemLocation){
      .type = device == 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
      .id = device == 0 ? 0 : gpu_of(device - 1)};
}

static bool managed(const operation* op) {
  const uint64_t at = memories[op->at[0]].base + op->at[1] * PROOF_GRANULE,
                 bytes = op->at[2] * PROOF_GRANULE;
  CUstream stream;
  if (op->code == OP_pf) {
    if (!stream_of(op, op->at[4], &stream)) return false;
    TRY(cuMemPrefetchAsync(at, bytes, location(op->at[3]), 0, stream));
  } else {
    if (!use(memories[op->at[0]].device, op)) return false;
    TRY(cuMemAdvise(at, bytes, (CUmem_advise)op->at[3], location(op->at[4])));
  }
  return true;
}

static bool make_stream(const operation* op) {
  if (!use(op->at[1], op)) return false;
  CUstream handle = op->at[2] == STREAM_PER_THREAD ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  const bool made = op->at[2] == STREAM_BLOCKING || op->at[2] == STREAM_NON_BLOCKING;
  if (made)
    TRY(cuStreamCreate(&handle,
                       op->at[2] == STREAM_BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
  streams[op->at[0]].handle = handle;
  streams[op->at[0]].device = op->at[1];
  streams[op->at[0]].made = made;
  return true;
}

bool execute(const operation* op) {
  CUstream stream;
  const cells none = {NULL, 0, 0};
  switch (op->code) {
    case OP_seg:
    case OP_mal:
    case OP_man:
    case OP_asy:
    case OP_pin:
    case OP_hst:
      return allocate(op);
    case OP_fre:
    case OP_fra:
      return release(op);
    case OP_act:
      return hand_out(op);
    case OP_ina:
      return take_back(op);
    case OP_k:
      return launch(op);
    case OP_cp:
      return copy(op);
    case OP_ms:
      return set(op);
    case OP_rec:
      return record(op);
    case OP_wai:
    case OP_esy:
    case OP_eqy:
      return wait_for_event(op);
    case OP_ssy:
      if (!stream_of(op, op->at[0], &stream)) return false;
      TRY(cuStreamSynchronize(stream));
      return true;
    case OP_csy:
      if (!use(op->at[0], op)) return false;
      TRY(cuCtxSynchronize());
      return true;
    case OP_hw:
      compute(KERNEL_FILL, cells_of(op->at[0], op->at[1], op->at[2]), none, none, op->at[3]);
      return true;
    case OP_hf:
      return host_function(op);
    case OP_wv:
    case OP_vw:
      return value(op);
    case OP_frk:
      return fork_child(op);
    case OP_nap:
      nanosleep(&(struct timespec){0, (long)op->at[0] * 1000}, NULL);
      return true;
    case OP_cm:
      return short_context(op);
    case OP_ce:
      return end_context(op->at[0], op);
    case OP_pf:
    case OP_adv:
      return managed(op);
    case OP_gb:
    case OP_ge:
    case OP_gl:
    case OP_gd:
      return graph(op);
    case OP_sn:
      return make_stream(op);
    case OP_sd:
      if (!stream_of(op, op->at[0], &stream) || (op->at[1] != 0 && !use(op->at[1] - 1, op)))
        return false;
      if (streams[op->at[0]].made) TRY(cuStreamDestroy(stream));
      return true;
    default:
      return true;
  }
}

/* A failed program leaves the GPU in a state that nothing more can be learned from. */
bool end_program(void) {
  const operation* const op = &current_program;
  if (!await_children(op)) return false;
  if (values != NULL) memset(values, 0, MOST_EVENTS * sizeof *values);
  if (current_program.at[4] != 0) values = NULL; /* they end with their context */
  for (uint64_t device = 0; device < MOST_DEVICES && current_program.at[4] != 0; ++device) {
    if (!end_context(device, op)) return false;
  }
  return true;
}
