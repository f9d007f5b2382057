// Which device a call of this thread is for, and what memory each device offers.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::hooks {

struct Device {
  CUuuid uuid{};
  std::uint64_t total_bytes = 0;  // of the card
  // What we may count on: what is free when first asked, or DEEPUM_GPU_MEMORY if that is less.
  std::uint64_t gpu_bytes = 0;
  bool pageable = false;  // concurrentManagedAccess: faults and migration as we need them
};

// The ordinal of the device whose context is current in this thread; -1 without a context. Asks the
// driver only after the thread's context changed. The first sight of a device opens the session.
int current_device() noexcept;
CUcontext current_context() noexcept;
// The thread's context changed, or contexts were destroyed.
void context_changed() noexcept;
void contexts_destroyed() noexcept;
void primary_context_seen(CUdevice device, CUcontext context) noexcept;
CUcontext primary_context(CUdevice device) noexcept;  // null: never retained
// Whether one device has had more than one context; a context synchronisation cannot then be told
// from a device's.
bool several_contexts() noexcept;

// Queries the driver at the first call for a device. nullptr: the driver does not answer.
const Device* device_memory(int device) noexcept;
// 90 % of the host memory that is available when first asked, or DEEPUM_HOST_MEMORY if that is
// less; bytes (host_budget.cpp).
std::uint64_t host_budget() noexcept;

}  // namespace deepum::hooks
