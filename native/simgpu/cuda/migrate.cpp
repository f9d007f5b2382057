// Prefetch and discard: moves of managed memory in stream order.
#include <algorithm>

#include "device.hpp"
#include "graphs.hpp"
#include "managed.hpp"
#include "operation.hpp"

namespace deepum::simgpu {

bool location_of(const State& state, CUmemLocation location, int& device) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      device = location.id;
      return state.concurrent_managed_access && valid_device(state, location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      device = um_model::kCpu;
      return true;
    default:
      return false;
  }
}

CUmemLocation location_from_device(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

CUresult managed_range(State& state, CUdeviceptr address, std::size_t bytes,
                       um_model::Range& range) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  // A range may run over several managed allocations that follow each other, and to the end of the
  // last page.
  constexpr std::uint64_t kPage = 4096;
  for (std::uint64_t at = address; at < address + bytes;) {
    const Allocation* const allocation = state.memory.find(at);
    if (allocation == nullptr || allocation->kind != MemoryKind::managed)
      return CUDA_ERROR_INVALID_VALUE;
    at = (allocation->end() + kPage - 1) / kPage * kPage;
  }
  range = {address, bytes};
  return CUDA_SUCCESS;
}

void for_allocations(State& state, um_model::Range range,
                     const std::function<void(Allocation&)>& visit) {
  for (std::uint64_t at = range.address; at < range.address + range.bytes;) {
    Allocation* const allocation = state.memory.find(at);
    if (allocation == nullptr) return;
    visit(*allocation);
    at = allocation->base + allocation->mapped;
  }
}

}  // namespace deepum::simgpu

using namespace deepum::simgpu;

namespace {

// The stream of a migration call, made ready; captures have no such nodes.
CUresult migration_stream(Call& call, CUstream handle, bool legacy_allowed, CUstream& stream) {
  stream = resolve_stream(call, handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->legacy && !legacy_allowed) return CUDA_ERROR_INVALID_VALUE;
  return refuse_on_stream(call, stream);
}

// Where the machine's driver does so: the caller waits until the stream has come to what it is
// about to queue.
CUresult wait_for_turn(Call& call, CUstream stream, um_model::Blocking kind) {
  return call.state().machine.blocking_calls >= kind ? finish_stream(call, stream) : CUDA_SUCCESS;
}

CUresult prefetch(CUdeviceptr address, std::size_t bytes, CUmemLocation location, unsigned flags,
                  CUstream handle) {
  Call call(Need::context, Role::migration);
  if (!call) return call.error();
  State& state = call.state();
  int device = 0;
  um_model::Range range{};
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!location_of(state, location, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (const CUresult error = managed_range(state, address, bytes, range); error != CUDA_SUCCESS)
    return error;
  CUstream stream = nullptr;
  if (const CUresult error = migration_stream(call, handle, true, stream); error != CUDA_SUCCESS)
    return error;
  if (const CUresult error = wait_for_turn(call, stream, um_model::Blocking::kPrefetches);
      error != CUDA_SUCCESS)
    return error;
  for_allocations(state, range,
                  [&](Allocation& allocation) { allocation.last_prefetch = location; });
  note_move(call, stream, range);
  call.engine().prefetch(call.host(), enter(call, stream), {&range, 1}, device);
  return CUDA_SUCCESS;
}

CUresult collect_ranges(State& state, const CUdeviceptr* addresses, const std::size_t* sizes,
                        std::size_t count, std::vector<um_model::Range>& ranges) {
  if (addresses == nullptr || sizes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  ranges.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const CUresult error = managed_range(state, addresses[i], sizes[i], ranges[i]);
        error != CUDA_SUCCESS)
      return error;
  }
  return CUDA_SUCCESS;
}

// Ranges with their locations: location j holds from range indices[j] up to that of the next.
CUresult batch(const CUdeviceptr* addresses, const std::size_t* sizes, std::size_t count,
               const CUmemLocation* locations, const std::size_t* indices,
               std::size_t location_count, unsigned long long flags, CUstream handle,
               bool discard) {
  Call call(Need::context, Role::migration);
  if (!call) return call.error();
  State& state = call.state();
  if (discard && state.machine.discards == um_model::Discards::kRefused)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (flags != 0 || locations == nullptr || indices == nullptr || location_count == 0 ||
      location_count > count || indices[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<um_model::Range> ranges;
  if (const CUresult error = collect_ranges(state, addresses, sizes, count, ranges);
      error != CUDA_SUCCESS)
    return error;
  std::vector<int> devices(location_count);
  for (std::size_t j = 0; j < location_count; ++j) {
    if (!location_of(state, locations[j], devices[j])) return CUDA_ERROR_INVALID_DEVICE;
    if (indices[j] >= count || (j > 0 && indices[j] <= indices[j - 1]))
      return CUDA_ERROR_INVALID_VALUE;
  }
  CUstream stream = nullptr;
  if (const CUresult error = migration_stream(call, handle, false, stream); error != CUDA_SUCCESS)
    return error;
  const auto kind =
      discard ? um_model::Blocking::kPrefetchesAndDiscards : um_model::Blocking::kPrefetches;
  if (const CUresult error = wait_for_turn(call, stream, kind); error != CUDA_SUCCESS) return error;
  const um_model::Stream id = enter(call, stream);
  for (std::size_t j = 0; j < location_count; ++j) {
    const std::size_t first = indices[j], last = j + 1 < location_count ? indices[j + 1] : count;
    const std::span<const um_model::Range> part(ranges.data() + first, last - first);
    for (const um_model::Range& range : part) {
      if (!discard) note_move(call, stream, range);
      for_allocations(state, range,
                      [&](Allocation& allocation) { allocation.last_prefetch = locations[j]; });
    }
    if (discard) {
      call.engine().discard(call.host(), id, part, devices[j], true);
    } else {
      call.engine().prefetch(call.host(), id, part, devices[j]);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
  return prefetch(devPtr, count, location_from_device(dstDevice), 0, hStream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
  return prefetch(devPtr, count, location, flags, hStream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                 CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                 size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
  return batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream,
               false);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream hStream) {
  Call call(Need::context, Role::migration);
  if (!call) return call.error();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call.state().machine.discards == um_model::Discards::kRefused)
    return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<um_model::Range> ranges;
  if (const CUresult error = collect_ranges(call.state(), dptrs, sizes, count, ranges);
      error != CUDA_SUCCESS)
    return error;
  CUstream stream = nullptr;
  if (const CUresult error = migration_stream(call, hStream, false, stream); error != CUDA_SUCCESS)
    return error;
  if (const CUresult error =
          wait_for_turn(call, stream, um_model::Blocking::kPrefetchesAndDiscards);
      error != CUDA_SUCCESS)
    return error;
  call.engine().discard(call.host(), enter(call, stream), ranges, um_model::kCpu, false);
  return CUDA_SUCCESS;
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                           CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                           size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream) {
  return batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream,
               true);
}
