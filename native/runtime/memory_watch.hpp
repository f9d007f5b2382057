// What managed memory may occupy of a device, and whether the driver keeps to a budget below what
// the card has.
//
// The budget (DEEPUM_GPU_MEMORY) binds the core alone: the driver knows nothing of it, so a launch
// that faults can take more. How much more is read from the driver's free memory, which counts what
// libraries and other processes take too.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace deepum::runtime {

// A device came into use: emits its event. Bytes as the driver tells them, with the context there
// already.
void watch_memory(CUdevice device, std::uint64_t free_bytes, std::uint64_t total_bytes) noexcept;
// So many bytes of plain device memory are the program's now: emits the capacity that is left if
// that changes by UM blocks.
void plain_memory(CUdevice device, std::uint64_t bytes) noexcept;
// The driver tells that so much is free, between these two points of the program's launches
// (deepum_free_memory_event).
void tell_free_memory(CUdevice device, std::uint64_t free_bytes, std::uint64_t completed,
                      std::uint64_t begun) noexcept;
// Whether the device has a budget below what was free of it: only then is it worth asking the
// driver.
bool has_budget(CUdevice device) noexcept;
// The driver tells that so much is free: emits how much is in use if it is beyond the budget and
// more than ever before.
void saw_free_memory(CUdevice device, std::uint64_t free_bytes) noexcept;

}  // namespace deepum::runtime
