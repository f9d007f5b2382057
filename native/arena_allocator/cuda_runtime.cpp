#include "cuda_runtime.hpp"

#include "loaded.hpp"

namespace deepum::arena_allocator {
namespace {

template <typename Function>
void find_runtime(Function& function, const char* name) noexcept {
  function = reinterpret_cast<Function>(loaded("libc10_cuda.so", name));
}

// The device is current as long as it lives.
class OnDevice {
 public:
  OnDevice(decltype(&cudaGetDevice) get, decltype(&cudaSetDevice) set, int device) noexcept
      : set_(set) {
    if (get(&before_) == cudaSuccess && before_ != device) {
      changed_ = set(device) == cudaSuccess;
    }
  }
  ~OnDevice() {
    if (changed_) {
      set_(before_);
    }
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  decltype(&cudaSetDevice) set_;
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace

const CudaRuntime& CudaRuntime::instance() noexcept {
  static const CudaRuntime only;
  return only;
}

CudaRuntime::CudaRuntime() noexcept {
  find_runtime(get_device_, "cudaGetDevice");
  find_runtime(set_device_, "cudaSetDevice");
  find_runtime(malloc_, "cudaMalloc");
  find_runtime(free_, "cudaFree");
  find_runtime(memory_, "cudaMemGetInfo");
  find_runtime(create_event_, "cudaEventCreateWithFlags");
  find_runtime(destroy_event_, "cudaEventDestroy");
  find_runtime(record_event_, "cudaEventRecord");
  find_runtime(query_event_, "cudaEventQuery");
  find_runtime(wait_event_, "cudaEventSynchronize");
  find_runtime(wait_stream_, "cudaStreamSynchronize");
  find_runtime(last_error_, "cudaGetLastError");
  const bool all = get_device_ && set_device_ && malloc_ && free_ && memory_ && create_event_ &&
                   destroy_event_ && record_event_ && query_event_ && wait_event_ && wait_stream_ &&
                   last_error_;
  if (!all) {
    malloc_ = nullptr;
  }
}

void* CudaRuntime::allocate(int device, std::size_t bytes) const noexcept {
  void* memory = nullptr;
  if (malloc_ == nullptr) {
    return nullptr;
  }
  const OnDevice current(get_device_, set_device_, device);
  if (malloc_(&memory, bytes) != cudaSuccess) {
    last_error_();  // so that PyTorch does not find it at its next launch
    return nullptr;
  }
  return memory;
}

void CudaRuntime::release(int device, void* memory) const noexcept {
  const OnDevice current(get_device_, set_device_, device);
  if (free_(memory) != cudaSuccess) {
    last_error_();
  }
}

cudaEvent_t CudaRuntime::record(cudaStream_t stream) const noexcept {
  cudaEvent_t event = nullptr;
  if (malloc_ == nullptr || create_event_(&event, cudaEventDisableTiming) != cudaSuccess) {
    return nullptr;
  }
  if (record_event_(event, stream) != cudaSuccess) {
    last_error_();
    destroy(event);
    return nullptr;
  }
  return event;
}

bool CudaRuntime::is_done(cudaEvent_t event) const noexcept {
  if (query_event_(event) == cudaSuccess) {
    return true;
  }
  last_error_();
  return false;
}

void CudaRuntime::wait(cudaEvent_t event) const noexcept { wait_event_(event); }

void CudaRuntime::destroy(cudaEvent_t event) const noexcept { destroy_event_(event); }

void CudaRuntime::wait_for_stream(cudaStream_t stream) const noexcept {
  if (malloc_ != nullptr) {
    wait_stream_(stream);
  }
}

std::pair<std::size_t, std::size_t> CudaRuntime::memory(int device) const noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  if (malloc_ == nullptr) {
    return {0, 0};
  }
  const OnDevice current(get_device_, set_device_, device);
  if (memory_(&free, &total) != cudaSuccess) {
    last_error_();
    return {0, 0};
  }
  return {free, total};
}

std::size_t CudaRuntime::total(int device) const noexcept { return memory(device).second; }

std::size_t CudaRuntime::free(int device) const noexcept { return memory(device).first; }

}  // namespace deepum::arena_allocator
