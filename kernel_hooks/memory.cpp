#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <numeric>
#include <string>

#include "allocation_ledger.hpp"
#include "allocation_table.hpp"
#include "devices.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "memory_watch.hpp"
#include "records.h"
#include "say.hpp"
#include "session.hpp"
#include "shim_settings.hpp"

namespace deepum::hooks {
namespace {

struct Books {
  ForkableMutex mutex;
  std::uint64_t used[DEEPUM_MAX_DEVICES] = {};
  std::uint64_t plain[DEEPUM_MAX_DEVICES] = {};  // of these
  std::uint64_t gpu[DEEPUM_MAX_DEVICES] = {};
  runtime::AllocationLedger ledgers[DEEPUM_MAX_DEVICES];
  std::atomic<bool> joined[DEEPUM_MAX_DEVICES] = {};
};
Books& books() noexcept { return immortal<Books>(); }

runtime::AllocationLedger& ledger(int device) noexcept {
  Books& all = books();
  if (all.joined[device].load(std::memory_order_acquire)) {
    return all.ledgers[device];
  }
  const std::lock_guard lock(all.mutex);
  if (!all.joined[device].load(std::memory_order_relaxed)) {
    const Device* memory = device_memory(device);
    char name[2 * sizeof(CUuuid) + 1] = {};
    for (std::size_t i = 0; memory && i < sizeof(CUuuid); ++i) {
      std::snprintf(name + 2 * i, 3, "%02x", static_cast<unsigned char>(memory->uuid.bytes[i]));
    }
    static std::atomic<bool> warned{false};
    if (!all.ledgers[device].open(runtime::ledger_directory(), name) &&
        runtime::settings().managed_limit != UINT64_MAX) {
      say_once(warned,
               "deepum: warning: DEEPUM_MANAGED_LIMIT: no shared file in the runtime directory; "
               "only this process is counted, set "
               "DEEPUM_RUNTIME_DIR\n");
    }
    all.joined[device].store(true, std::memory_order_release);
  }
  return all.ledgers[device];
}

// Under the mutex. The host budget is one for all devices: what does not fit on each counts against
// it.
bool fits(const Books& all) noexcept {
  std::uint64_t spilled = 0;
  for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    if (all.used[device] > all.gpu[device]) {
      spilled += all.used[device] - all.gpu[device];
    }
  }
  return spilled <= host_budget();
}

// Under the mutex: of the devices used so far, and the host.
std::uint64_t room(const Books& all) noexcept {
  return std::reduce(std::begin(all.gpu), std::end(all.gpu), host_budget());
}

}  // namespace

Charge charge(int device, std::uint64_t bytes, bool managed) noexcept {
  const Device* memory = device_memory(device);
  if (!memory) {
    return Charge::kMade;  // the driver reports the error
  }
  Books& all = books();
  runtime::AllocationLedger& shared = ledger(device);
  {
    const std::lock_guard lock(all.mutex);
    all.gpu[device] = memory->gpu_bytes;
    if (bytes > UINT64_MAX / 2 || all.used[device] > UINT64_MAX / 2) {
      return Charge::kBeyondHostMemory;
    }
    all.used[device] += bytes;
    runtime::allocatable(room(all));
    if (!fits(all)) {
      all.used[device] -= bytes;
      return Charge::kBeyondHostMemory;
    }
    if (!managed) {
      all.plain[device] += bytes;
      runtime::plain_memory(device, all.plain[device]);
    }
  }
  if (!managed || shared.take(bytes, runtime::settings().managed_limit)) {
    return Charge::kMade;
  }
  const std::lock_guard lock(all.mutex);
  all.used[device] -= bytes;
  return Charge::kBeyondManagedLimit;
}

void warn_out_of_memory(Charge refused, int device, std::uint64_t bytes) noexcept {
  const auto mebibytes = [](std::uint64_t count) {
    return static_cast<unsigned long long>(count >> 20);
  };
  Books& all = books();
  if (refused == Charge::kBeyondManagedLimit) {
    static std::atomic<bool> warned{false};
    const runtime::AllocationLedger& shared = ledger(device);
    say_once(warned,
             "deepum: warning: out of memory: %llu MiB beside %llu MiB of this process and %llu "
             "MiB of others on GPU %d exceed the limit of "
             "%llu MiB for all; raise --managed-limit (DEEPUM_MANAGED_LIMIT), or ask for less\n",
             mebibytes(bytes), mebibytes(shared.own()), mebibytes(shared.others()), device,
             mebibytes(runtime::settings().managed_limit));
    return;
  }
  runtime::allocation_refused();
  std::uint64_t used, gpu;
  {
    const std::lock_guard lock(all.mutex);
    used = all.used[device];
    gpu = all.gpu[device];
  }
  static std::atomic<bool> warned{false};
  say_once(warned,
           "deepum: warning: out of memory: %llu MiB beside %llu MiB on GPU %d do not fit in its "
           "%llu MiB and the %llu MiB of host memory that "
           "may be used; give more with --host-memory SIZE (DEEPUM_HOST_MEMORY), or ask for less; "
           "expandable_segments does not help\n",
           mebibytes(bytes), mebibytes(used), device, mebibytes(gpu), mebibytes(host_budget()));
}

void refund(int device, std::uint64_t bytes, bool managed) noexcept {
  if (!device_memory(device)) {
    return;
  }
  Books& all = books();
  if (managed) {
    ledger(device).give(bytes);
  }
  const std::lock_guard lock(all.mutex);
  all.used[device] -= std::min(bytes, all.used[device]);
  if (!managed) {
    all.plain[device] -= std::min(bytes, all.plain[device]);
    runtime::plain_memory(device, all.plain[device]);
  }
}

// Our own are asked for in whole UM blocks, so that no two share one.
std::uint64_t charged_bytes(const runtime::Allocation& allocation) noexcept {
  if (!allocation.managed || allocation.of_program) {
    return allocation.bytes;
  }
  return (allocation.bytes + runtime::kUmBlockBytes - 1) & ~(runtime::kUmBlockBytes - 1);
}

std::optional<runtime::Allocation> disguised(CUdeviceptr address) noexcept {
  const auto found = runtime::Allocations::instance().find(address);
  return found && found->managed && !found->of_program ? found : std::nullopt;
}

std::optional<MemoryInfo> memory_info(int device) noexcept {
  const Device* memory = device_memory(device);
  if (!memory || !memory->pageable) {
    return std::nullopt;
  }
  const std::uint64_t host = host_budget();
  const std::uint64_t limit = runtime::settings().managed_limit;
  const runtime::AllocationLedger& shared = ledger(device);
  Books& all = books();
  const std::lock_guard lock(all.mutex);
  std::uint64_t host_left = host;
  for (int other = 0; other < DEEPUM_MAX_DEVICES; ++other) {
    if (other != device && all.used[other] > all.gpu[other]) {
      host_left -= std::min(host_left, all.used[other] - all.gpu[other]);
    }
  }
  MemoryInfo info{};
  info.total_bytes = std::min(memory->gpu_bytes + host, limit);
  const std::uint64_t room = memory->gpu_bytes + host_left;
  info.free_bytes = room - std::min(room, all.used[device]);
  if (limit != UINT64_MAX) {
    info.free_bytes =
        std::min(info.free_bytes, limit - std::min(limit, shared.own() + shared.others()));
  }
  info.free_bytes = std::min(info.free_bytes, info.total_bytes);
  return info;
}

void abandon_memory_in_child() noexcept {
  Books& all = books();
  all.mutex.renew();
  for (int device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    all.used[device] = all.plain[device] = 0;
    all.ledgers[device].abandon_in_child();
  }
}

}  // namespace deepum::hooks
