/* An allocator for tensors that are shared with other processes, as docs/sharing.md shows it. */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <sys/types.h>

void* segment_alloc(ssize_t bytes, int device, cudaStream_t stream) {
  (void)device, (void)stream;
  void* memory = NULL;
  return cudaMalloc(&memory, (size_t)bytes) == cudaSuccess ? memory : NULL;
}
void segment_free(void* memory, ssize_t bytes, int device, cudaStream_t stream) {
  (void)bytes, (void)device, (void)stream;
  cudaFree(memory);
}
