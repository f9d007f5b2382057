// Device allocations become unified memory above a size threshold, within real limits.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "allocation_table.hpp"
#include "allocations.hpp"
#include "callers.hpp"
#include "devices.hpp"
#include "driver.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "launches.hpp"
#include "memory.hpp"
#include "observed_faults.hpp"
#include "pending_frees.hpp"
#include "real_driver.hpp"
#include "say.hpp"
#include "session.hpp"
#include "shim_settings.hpp"
#include "streams.hpp"

namespace deepum::hooks {
namespace {

using runtime::Allocation;
using runtime::Allocations;

std::uint64_t whole_blocks(std::uint64_t bytes) noexcept {
  return (bytes + runtime::kUmBlockBytes - 1) & ~(runtime::kUmBlockBytes - 1);
}

bool charge_or_reclaim(int device, std::uint64_t bytes, bool managed) noexcept {
  Charge made = charge(device, bytes, managed);
  if (made != Charge::kMade) {
    free_all_pending();
    made = charge(device, bytes, managed);
  }
  if (made != Charge::kMade) {
    warn_out_of_memory(made, device, bytes);
  }
  return made == Charge::kMade;
}

void record(CUdeviceptr address, std::uint64_t bytes, int device, bool managed, bool of_program,
            std::uint64_t charged) noexcept {
  const auto context = reinterpret_cast<std::uint64_t>(current_context());
  if (!Allocations::instance().add(address, bytes, static_cast<std::uint32_t>(device), managed,
                                   of_program, context)) {
    refund(device, charged, managed);
  }
  if (managed && !any_capture()) {
    runtime::read_free_memory(device);
  }
}

CUresult allocate_managed(CUdeviceptr* address, std::uint64_t bytes, int device) noexcept {
  const std::uint64_t managed_bytes = whole_blocks(bytes);
  if (managed_bytes < bytes || !charge_or_reclaim(device, managed_bytes, true)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  CUdeviceptr base = 0;
  runtime::before_locked_wait();
  const CUresult result =
      forward(real<false>().cuMemAllocManaged, &base, static_cast<std::size_t>(managed_bytes),
              static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL));
  if (result != CUDA_SUCCESS) {
    refund(device, managed_bytes, true);
    return result;
  }
  record(base, bytes, device, true, false, managed_bytes);
  *address = base;
  return result;
}

// The call as the program made it.
template <typename Plain>
CUresult allocate_plain(CUdeviceptr* address, std::uint64_t bytes, int device,
                        Plain plain) noexcept {
  if (!charge_or_reclaim(device, bytes, false)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = plain();
  if (result != CUDA_SUCCESS) {
    refund(device, bytes, false);
    return result;
  }
  record(*address, bytes, device, false, false, bytes);
  return result;
}

// Large memory that the program's user keeps out of our hands, since libraries hand it to other
// processes or devices. With a full card it is refused, as it would be without us.
bool stays_plain(std::uint64_t bytes) noexcept {
  const runtime::PlainRules& rules = runtime::settings().plain_memory;
  return rules.by_size(bytes) || rules_naming_caller(rules.by_library(bytes)) != 0;
}

bool becomes_managed(std::uint64_t bytes) noexcept {
  return bytes >= runtime::settings().managed_threshold && !stays_plain(bytes);
}

// Small allocations stay device memory, unless the card has no more.
template <typename Plain>
CUresult allocate(CUdeviceptr* address, std::uint64_t bytes, Plain plain) noexcept {
  const int device = current_device();
  const Device* memory = device_memory(device);
  if (!address || bytes == 0 || !memory || !memory->pageable ||
      !ready(real<false>().cuMemAllocManaged)) {
    return plain();
  }
  if (becomes_managed(bytes)) {
    return allocate_managed(address, bytes, device);
  }
  const CUresult result = allocate_plain(address, bytes, device, plain);
  return result == CUDA_ERROR_OUT_OF_MEMORY && !stays_plain(bytes)
             ? allocate_managed(address, bytes, device)
             : result;
}

template <bool kPerThread>
CUresult on_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate(address, bytes,
                  [&]() noexcept { return forward(real<false>().cuMemAlloc_v2, address, bytes); });
}

template <bool kPerThread>
CUresult on_cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width_bytes,
                               size_t height, unsigned element_bytes) {
  // What every CUDA GPU gives (CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is 32 on all).
  constexpr std::uint64_t kPitch = 512;
  const auto plain = [&]() noexcept {
    return forward(real<false>().cuMemAllocPitch_v2, address, pitch, width_bytes, height,
                   element_bytes);
  };
  const std::uint64_t row = (width_bytes + kPitch - 1) & ~(kPitch - 1);
  const bool valid = address && pitch && width_bytes && height &&
                     (element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  const int device = current_device();
  const Device* memory = device_memory(device);
  if (!valid || !memory || !memory->pageable || row < width_bytes ||
      height > UINT64_MAX / 2 / row) {
    return plain();
  }
  if (!becomes_managed(row * height)) {
    return allocate_plain(address, row * height, device, plain);
  }
  const CUresult result = allocate_managed(address, row * height, device);
  if (result == CUDA_SUCCESS) {
    *pitch = row;
  }
  return result;
}

// Device memory with addresses of the program's choice cannot be made managed. PyTorch has it so
// where a program sets expandable_segments itself, behind the launcher's back.
template <bool kPerThread>
CUresult on_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                        const CUmemAllocationProp* properties, unsigned long long flags) {
  const CUresult result = forward(real<false>().cuMemCreate, handle, bytes, properties, flags);
  if (result == CUDA_SUCCESS && properties &&
      properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && becomes_managed(bytes)) {
    static std::atomic<bool> warned{false};
    say_once(warned,
             "deepum: warning: cuMemCreate: this memory stays on the GPU and is not managed; with "
             "PyTorch, do not set expandable_segments in "
             "the program\n");
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  const int device = current_device();
  if (!address || bytes == 0 || !device_memory(device)) {
    return forward(real<false>().cuMemAllocManaged, address, bytes, flags);
  }
  if (!charge_or_reclaim(device, bytes, true)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = forward(real<false>().cuMemAllocManaged, address, bytes, flags);
  if (result != CUDA_SUCCESS) {
    refund(device, bytes, true);
    return result;
  }
  record(*address, bytes, device, true, true, bytes);
  return result;
}

// ---- stream-ordered ----

struct Pools {
  ForkableMutex mutex;
  std::set<CUmemoryPool> left_alone;
};
Pools& pools() noexcept { return immortal<Pools>(); }

template <typename Plain>
CUresult allocate_in_order(CUdeviceptr* address, std::uint64_t bytes, const StreamRef& stream,
                           Plain plain) noexcept {
  const Device* memory = device_memory(stream.device);
  if (!address || bytes == 0 || !memory || !memory->pageable || capturing(stream)) {
    return plain();
  }
  if (!becomes_managed(bytes)) {
    return allocate_plain(address, bytes, stream.device, plain);
  }
  // Freed on this very stream before: its order makes the reuse safe, as in the driver's own pools.
  if (const CUdeviceptr reused = take_pending(stream, whole_blocks(bytes))) {
    record(reused, bytes, stream.device, true, false, whole_blocks(bytes));
    *address = reused;
    return CUDA_SUCCESS;
  }
  return allocate_managed(address, bytes, stream.device);
}

template <bool kPerThread>
CUresult on_cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_in_order(address, bytes, stream_of(stream, kPerThread), [&]() noexcept {
    return forward(real<kPerThread>().cuMemAllocAsync, address, bytes, stream);
  });
}

template <bool kPerThread>
CUresult on_cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                    CUstream stream) {
  const auto plain = [&]() noexcept {
    return forward(real<kPerThread>().cuMemAllocFromPoolAsync, address, bytes, pool, stream);
  };
  {
    const std::lock_guard lock(pools().mutex);
    if (pools().left_alone.contains(pool)) {
      return plain();
    }
  }
  return allocate_in_order(address, bytes, stream_of(stream, kPerThread), plain);
}

// Pools of host memory, and those whose memory goes to other processes, are not device memory that
// we may move.
template <bool kPerThread>
CUresult on_cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps_v1* properties) {
  const CUresult result = forward(real<false>().cuMemPoolCreate, pool, properties);
  if (result != CUDA_SUCCESS || !pool || !properties) {
    return result;
  }
  const bool plain = properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE;
  const std::lock_guard lock(pools().mutex);
  if (plain) {
    pools().left_alone.erase(*pool);
  } else {
    pools().left_alone.insert(*pool);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemPoolDestroy(CUmemoryPool pool) {
  {
    const std::lock_guard lock(pools().mutex);
    pools().left_alone.erase(pool);
  }
  return forward(real<false>().cuMemPoolDestroy, pool);
}

template <bool kPerThread>
CUresult on_cuMemFree_v2(CUdeviceptr address) {
  faults_at_rest();
  const auto allocation = address ? Allocations::instance().remove(address) : std::nullopt;
  runtime::before_locked_wait();
  const CUresult result = forward(real<false>().cuMemFree_v2, address);
  if (allocation) {
    refund(static_cast<int>(allocation->device), charged_bytes(*allocation), allocation->managed);
  }
  return result;
}

template <bool kPerThread>
CUresult on_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  const StreamRef at = stream_of(stream, kPerThread);
  const auto plain = [&]() noexcept {
    return forward(real<kPerThread>().cuMemFreeAsync, address, stream);
  };
  if (!address || at.device < 0 || capturing(at)) {
    return plain();
  }
  const auto found = Allocations::instance().find(address);
  if (!found || found->base != address) {
    return plain();
  }
  faults_at_rest();
  const auto allocation = Allocations::instance().remove(address);
  if (!allocation) {
    return plain();
  }
  if (!allocation->managed) {
    const CUresult result = plain();
    refund(static_cast<int>(allocation->device), allocation->bytes, false);
    return result;
  }
  return free_in_order(at, *allocation);
}

}  // namespace

void forget_memory_of(CUcontext context) noexcept {
  forget_pending_of(context);
  Allocations::instance().forget_context(
      reinterpret_cast<std::uint64_t>(context), [](const Allocation& allocation) {
        refund(static_cast<int>(allocation.device), charged_bytes(allocation), allocation.managed);
      });
}

}  // namespace deepum::hooks

#define HOOKS_MEMORY
#include "exports.inc"
