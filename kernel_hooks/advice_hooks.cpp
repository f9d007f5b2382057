// The program's own prefetches and advice: seen, respected, handed on. A discard of the program's
// needs no event: what it discards is written before it is read again.
#include "allocations.hpp"
#include "real_driver.hpp"
#include "session.hpp"
#include "streams.hpp"

namespace deepum::hooks {
namespace {

int ordinal(const CUmemLocation& location) noexcept {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

void report(deepum_event_kind kind, CUdeviceptr address, std::size_t bytes, int location,
            int advice) noexcept {
  runtime::Extent extent;
  if (!runtime::Allocations::instance().range_of(address, bytes, &extent)) {
    return;
  }
  deepum_program_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = static_cast<std::uint8_t>(kind);
  event.header.device = location < 0 ? 0 : static_cast<std::uint32_t>(location);
  event.range = extent.range;
  event.location = location < 0 ? -1 : location;
  event.advice = advice;
  runtime::emit(&event.header);
}

void report_batch(const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count,
                  const CUmemLocation* locations, const std::size_t* location_starts,
                  std::size_t location_count) noexcept {
  if (!addresses || !sizes || !locations || !location_starts || location_count == 0) {
    return;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (at + 1 < location_count && location_starts[at + 1] <= i) {
      ++at;
    }
    report(DEEPUM_EVENT_PROGRAM_PREFETCH, addresses[i], sizes[i], ordinal(locations[at]), 0);
  }
}

// Reported once the driver took it, so that nothing is believed that did not happen.
template <bool kPerThread>
CUresult on_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device,
                               CUstream stream) {
  const CUresult result =
      forward(real<kPerThread>().cuMemPrefetchAsync, address, bytes, device, stream);
  if (result == CUDA_SUCCESS) {
    report(DEEPUM_EVENT_PROGRAM_PREFETCH, address, bytes, device, 0);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                  unsigned flags, CUstream stream) {
  const CUresult result =
      forward(real<kPerThread>().cuMemPrefetchAsync_v2, address, bytes, location, flags, stream);
  if (result == CUDA_SUCCESS) {
    report(DEEPUM_EVENT_PROGRAM_PREFETCH, address, bytes, ordinal(location), 0);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                    CUmemLocation* locations, size_t* location_starts,
                                    size_t location_count, unsigned long long flags,
                                    CUstream stream) {
  const CUresult result = forward(real<kPerThread>().cuMemPrefetchBatchAsync, addresses, sizes,
                                  count, locations, location_starts, location_count, flags, stream);
  if (result == CUDA_SUCCESS) {
    report_batch(addresses, sizes, count, locations, location_starts, location_count);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                              CUmemLocation* locations, size_t* location_starts,
                                              size_t location_count, unsigned long long flags,
                                              CUstream stream) {
  const CUresult result =
      forward(real<kPerThread>().cuMemDiscardAndPrefetchBatchAsync, addresses, sizes, count,
              locations, location_starts, location_count, flags, stream);
  if (result == CUDA_SUCCESS) {
    report_batch(addresses, sizes, count, locations, location_starts, location_count);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  const CUresult result = forward(real<false>().cuMemAdvise, address, bytes, advice, device);
  if (result == CUDA_SUCCESS) {
    report(DEEPUM_EVENT_PROGRAM_ADVISE, address, bytes, device, advice);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                           CUmemLocation location) {
  const CUresult result = forward(real<false>().cuMemAdvise_v2, address, bytes, advice, location);
  if (result == CUDA_SUCCESS) {
    report(DEEPUM_EVENT_PROGRAM_ADVISE, address, bytes, ordinal(location), advice);
  }
  return result;
}

}  // namespace
}  // namespace deepum::hooks

#define HOOKS_ADVICE
#include "exports.inc"
