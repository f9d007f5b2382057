#include "memory_watch.hpp"

#include <algorithm>
#include <atomic>

#include "allocation_table.hpp"
#include "message.hpp"
#include "records.h"
#include "session.hpp"
#include "shim_settings.hpp"

namespace deepum::runtime {
namespace {

// The reserve is no more than that part of what was free.
constexpr std::uint64_t kLeastRoomOfReserve = 16;

struct Watched {
  std::atomic<std::uint64_t> total{0};  // 0: not in use
  std::atomic<std::uint64_t> room{0};   // free when it came into use
  std::atomic<std::uint64_t> plain{0};  // whole UM blocks
  std::atomic<std::uint64_t> most{0};   // in use beyond the budget, as told
};
Watched watched[DEEPUM_MAX_DEVICES];

std::uint64_t reserve(const Watched& memory) noexcept {
  return std::min(settings().gpu_reserve, memory.room.load() / kLeastRoomOfReserve);
}

void tell(CUdevice device, deepum_event_kind kind) noexcept {
  const Watched& memory = watched[device];
  const std::uint64_t usable = std::min<std::uint64_t>(memory.room.load() - reserve(memory),
                                                       settings().gpu_memory.of(device));
  deepum_device_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = kind;
  event.header.device = static_cast<std::uint32_t>(device);
  event.total_bytes = memory.total.load();
  event.capacity_bytes = usable - std::min(usable, memory.plain.load());
  if (emit(&event.header) != 0) {
    say(Level::kEverything, "GPU %d: %llu MiB, of which %llu MiB are for managed memory", device,
        static_cast<unsigned long long>(event.total_bytes >> 20),
        static_cast<unsigned long long>(event.capacity_bytes >> 20));
  }
}

}  // namespace

void watch_memory(CUdevice device, std::uint64_t free_bytes, std::uint64_t total_bytes) noexcept {
  Watched& memory = watched[device];
  memory.room.store(free_bytes + memory.plain.load());
  memory.total.store(total_bytes);
  tell(device, DEEPUM_EVENT_DEVICE);
}

void plain_memory(CUdevice device, std::uint64_t bytes) noexcept {
  Watched& memory = watched[device];
  const std::uint64_t blocks = bytes & ~(kUmBlockBytes - 1);
  if (memory.plain.exchange(blocks) != blocks && memory.total.load() != 0) {
    tell(device, DEEPUM_EVENT_CAPACITY);
  }
}

void tell_free_memory(CUdevice device, std::uint64_t free_bytes, std::uint64_t completed,
                      std::uint64_t begun) noexcept {
  deepum_free_memory_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_FREE_MEMORY;
  event.header.device = static_cast<std::uint32_t>(device);
  event.free_bytes = free_bytes;
  event.reserve_bytes = reserve(watched[device]);
  event.completed = completed;
  event.begun = begun;
  emit(&event.header);
}

bool has_budget(CUdevice device) noexcept {
  return device >= 0 && device < DEEPUM_MAX_DEVICES &&
         settings().gpu_memory.of(device) < watched[device].room.load(std::memory_order_relaxed);
}

void saw_free_memory(CUdevice device, std::uint64_t free_bytes) noexcept {
  Watched& memory = watched[device];
  const std::uint64_t room = memory.room.load();
  const std::uint64_t used = room - std::min(room, free_bytes);
  std::uint64_t most = memory.most.load();
  while (used > settings().gpu_memory.of(device) && used > most) {
    if (!memory.most.compare_exchange_weak(most, used)) {
      continue;
    }
    deepum_usage_event event{};
    event.header.words = sizeof event / 8;
    event.header.kind = DEEPUM_EVENT_USAGE;
    event.header.device = static_cast<std::uint32_t>(device);
    event.used_bytes = used;
    event.budget_bytes = settings().gpu_memory.of(device);
    emit(&event.header);
    return;
  }
}

}  // namespace deepum::runtime
