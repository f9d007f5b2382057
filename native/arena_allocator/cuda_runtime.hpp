// CUDA's runtime as the process has it: the library that PyTorch uses, found when it is first
// needed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

namespace deepum::arena_allocator {

class CudaRuntime {
 public:
  static const CudaRuntime& instance() noexcept;

  // nullptr: the driver has no such memory, or there is no CUDA.
  void* allocate(int device, std::size_t bytes) const noexcept;
  // Waits for all work of the device first.
  void release(int device, void* memory) const noexcept;
  // All that was given to the stream so far; nullptr where that cannot be told.
  cudaEvent_t record(cudaStream_t stream) const noexcept;
  bool is_done(cudaEvent_t event) const noexcept;
  void wait(cudaEvent_t event) const noexcept;
  void destroy(cudaEvent_t event) const noexcept;
  // Bytes of the device; 0: not known.
  std::size_t total(int device) const noexcept;
  std::size_t free(int device) const noexcept;
  void wait_for_stream(cudaStream_t stream) const noexcept;

 private:
  CudaRuntime() noexcept;
  std::pair<std::size_t, std::size_t> memory(int device) const noexcept;

  decltype(&cudaGetDevice) get_device_;
  decltype(&cudaSetDevice) set_device_;
  cudaError_t (*malloc_)(void**, std::size_t);
  decltype(&cudaFree) free_;
  decltype(&cudaMemGetInfo) memory_;
  cudaError_t (*create_event_)(cudaEvent_t*, unsigned);
  decltype(&cudaEventDestroy) destroy_event_;
  decltype(&cudaEventRecord) record_event_;
  decltype(&cudaEventQuery) query_event_;
  decltype(&cudaEventSynchronize) wait_event_;
  decltype(&cudaStreamSynchronize) wait_stream_;
  decltype(&cudaGetLastError) last_error_;
};

}  // namespace deepum::arena_allocator
