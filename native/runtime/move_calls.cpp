#include "move_calls.hpp"

#include <algorithm>
#include <atomic>

#include "driver.hpp"

namespace deepum::runtime {
namespace {

std::atomic<bool> batches_refused{false}, discards_refused{false};

CUmemLocation to_location(int location) noexcept {
  CUmemLocation made{};
  made.type = location == kHost ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  made.id = location == kHost ? 0 : location;
  return made;
}

CUresult prefetch_one(const Span& span, int location, CUstream stream) noexcept {
  const Driver& call = driver();
  if (call.MemPrefetchAsync_v2) {
    return call.MemPrefetchAsync_v2(span.address, span.bytes, to_location(location), 0, stream);
  }
  if (!call.MemPrefetchAsync) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return call.MemPrefetchAsync(span.address, span.bytes,
                               location == kHost ? CU_DEVICE_CPU : location, stream);
}

}  // namespace

bool has_batches() noexcept {
  return driver().MemPrefetchBatchAsync && !batches_refused.load(std::memory_order_relaxed);
}

CUresult prefetch(const Span* spans, std::size_t count, int location, CUstream stream) noexcept {
  if (count > 1 && has_batches()) {
    CUdeviceptr addresses[kMostInBatch];
    std::size_t sizes[kMostInBatch];
    count = std::min(count, kMostInBatch);
    for (std::size_t i = 0; i < count; ++i) {
      addresses[i] = spans[i].address;
      sizes[i] = spans[i].bytes;
    }
    CUmemLocation where = to_location(location);
    std::size_t first = 0;
    const CUresult result =
        driver().MemPrefetchBatchAsync(addresses, sizes, count, &where, &first, 1, 0, stream);
    if (result != CUDA_ERROR_NOT_SUPPORTED) {
      return result;
    }
    // The library has it, the kernel module under it does not.
    batches_refused.store(true, std::memory_order_relaxed);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult result = prefetch_one(spans[i], location, stream); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

bool can_discard() noexcept {
  return (driver().MemDiscardBatchAsync || driver().MemDiscardAndPrefetchBatchAsync) &&
         !discards_refused.load(std::memory_order_relaxed);
}

void refuse_discards() noexcept { discards_refused.store(true, std::memory_order_relaxed); }

CUresult drop_content(const Span& span, bool populated, CUstream stream) noexcept {
  const Driver& call = driver();
  CUdeviceptr address = span.address;
  std::size_t bytes = span.bytes, first = 0;
  CUresult result;
  if (call.MemDiscardBatchAsync && (populated || !call.MemDiscardAndPrefetchBatchAsync)) {
    result = call.MemDiscardBatchAsync(&address, &bytes, 1, 0, stream);
  } else {
    CUmemLocation where = to_location(kHost);
    result =
        call.MemDiscardAndPrefetchBatchAsync(&address, &bytes, 1, &where, &first, 1, 0, stream);
  }
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    refuse_discards();  // the library has it, the kernel module under it does not
  }
  return result;
}

CUresult advise(const Span& span, CUmem_advise advice, int location) noexcept {
  const Driver& call = driver();
  if (call.MemAdvise_v2) {
    return call.MemAdvise_v2(span.address, span.bytes, advice, to_location(location));
  }
  if (!call.MemAdvise) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return call.MemAdvise(span.address, span.bytes, advice,
                        location == kHost ? CU_DEVICE_CPU : location);
}

}  // namespace deepum::runtime
