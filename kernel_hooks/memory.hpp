// What the program's device memory costs and where the limits are; memory freed in stream order.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "allocations.hpp"

namespace deepum::hooks {

enum class Charge : std::uint8_t {
  kMade,
  kBeyondHostMemory,  // beyond the GPU plus the host budget
  // Managed memory beyond DEEPUM_MANAGED_LIMIT, over all processes of this user on that GPU.
  kBeyondManagedLimit,
};
// Accounts for `bytes` more on a device, unless a limit refuses them.
Charge charge(int device, std::uint64_t bytes, bool managed) noexcept;
void refund(int device, std::uint64_t bytes, bool managed) noexcept;
// Tells the daemon of memory that GPU and host had no room for; warns once of each limit that
// refused some, and names the setting that gives more.
void warn_out_of_memory(Charge refused, int device, std::uint64_t bytes) noexcept;
// What `charge` was given for an allocation.
std::uint64_t charged_bytes(const runtime::Allocation& allocation) noexcept;
// The managed memory that holds the address, if the program takes it for device memory.
std::optional<runtime::Allocation> disguised(CUdeviceptr address) noexcept;
struct MemoryInfo {
  std::uint64_t free_bytes;
  std::uint64_t total_bytes;
};
std::optional<MemoryInfo> memory_info(int device) noexcept;

// Frees stream-ordered memory whose work has completed; with `wait` (out of memory) waits for the
// rest.
void free_what_is_done() noexcept;
void free_all_pending() noexcept;
// A context is gone and its memory with it.
void forget_memory_of(CUcontext context) noexcept;
void abandon_memory_in_child() noexcept;

}  // namespace deepum::hooks
