/* What libdeepum_arena.so needs of CUDA's runtime, over the host's memory: a device of `fake_limit`
 * bytes, and events that are done when `fake_finish` was called behind them. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

static size_t held;
static size_t limit = (size_t)1 << 40;
static long finished;
static long recorded;

struct memory {
  size_t bytes;
};
enum { kHead = 2 << 20 };

void fake_limit(size_t bytes) { limit = bytes; }
size_t fake_held(void) { return held; }
void fake_finish(void) { finished = recorded; }
long fake_unfinished(void) { return recorded - finished; }

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (held + bytes > limit) return cudaErrorMemoryAllocation;
  char* const made = aligned_alloc(kHead, kHead + bytes);
  if (!made) return cudaErrorMemoryAllocation;
  ((struct memory*)made)->bytes = bytes;
  held += bytes;
  *memory = made + kHead;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  char* const made = (char*)memory - kHead;
  held -= ((struct memory*)made)->bytes;
  finished = recorded;
  free(made);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  *total = limit;
  *free_bytes = limit - held;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  (void)flags;
  *event = calloc(1, sizeof(long));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  (void)stream;
  *(long*)event = ++recorded;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return *(long*)event <= finished ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (*(long*)event > finished) finished = *(long*)event;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  finished = recorded;
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
