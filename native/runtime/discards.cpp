#include "discards.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <new>

#include "event_handles.hpp"

namespace deepum::runtime {
namespace {

constexpr int kYields = 1000;
constexpr timespec kNap{0, 50000};

}  // namespace

// Never destroyed: the mover runs until the program's exit handlers, and memory may be freed after
// them.
Discards& Discards::instance() noexcept {
  alignas(Discards) static unsigned char memory[sizeof(Discards)];
  static Discards* const discards = new (memory) Discards;
  return *discards;
}

void Discards::abandon_in_child() noexcept { new (this) Discards; }

Discards::Awaited Discards::Lane::latest(std::uint64_t address,
                                         std::uint64_t bytes) const noexcept {
  const mover::DiscardMap::Awaited found = entries.latest(address, bytes);
  return found.id == 0 ? Awaited{} : Awaited{found.id, to_event(found.event), context};
}

bool Discards::propose(std::size_t device, CUcontext context, std::uint64_t address,
                       std::uint64_t bytes, std::uint64_t id) noexcept try {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[device];
  if (forbidden_ || (lane.closed && lane.context == context) ||
      !lane.entries.propose(address, bytes, id)) {
    return false;
  }
  lane.context = context;
  lane.closed = false;
  lane.proposed = id;
  return true;
} catch (...) {
  return false;
}

// An entry that is gone is that of memory or of a context that ended meanwhile: whoever ended it
// has waited for the discard.
void Discards::committed(std::size_t device, std::uint64_t address, std::uint64_t id,
                         CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[device];
  if (lane.entries.given(address, id, to_handle(event)) && event) {
    lane.last = {id, event, lane.context};
  }
  lane.given.store(id, std::memory_order_release);
}

// The mover is between two calls of the driver, or in one that takes its time. To go on without it
// would be to use memory that is about to be dropped.
void Discards::wait_given(const Lane& lane, std::uint64_t id) const noexcept {
  for (int tries = 0;
       lane.given.load(std::memory_order_acquire) < id && !ended_.load(std::memory_order_acquire);
       ++tries) {
    if (tries < kYields) {
      sched_yield();
    } else {
      ::nanosleep(&kNap, nullptr);
    }
  }
}

Discards::AwaitedOfLanes Discards::latest(std::uint64_t address, std::uint64_t bytes) noexcept {
  AwaitedOfLanes all;
  const auto find = [&](std::size_t device) {
    const std::lock_guard lock(mutex_);
    return all[device] = lanes_[device].latest(address, bytes);
  };
  for (std::size_t device = 0; device < lanes_.size(); ++device) {
    const Awaited found = find(device);
    if (found.id == 0 || found.event) {
      continue;
    }
    wait_given(lanes_[device], found.id);
    if (const Awaited given = find(device); given.id != 0 && !given.event) {
      // The program ends before it was given: behind everything that was.
      const std::lock_guard lock(mutex_);
      all[device] = lanes_[device].last;
    }
  }
  return all;
}

Discards::AwaitedOfLanes Discards::latest() noexcept {
  AwaitedOfLanes all;
  const std::lock_guard lock(mutex_);
  std::ranges::transform(lanes_, all.begin(), [](const Lane& lane) { return lane.last; });
  return all;
}

Discards::AwaitedOfLanes Discards::forbid() noexcept {
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES> proposed;
  {
    const std::lock_guard lock(mutex_);
    forbidden_ = true;
    std::ranges::transform(lanes_, proposed.begin(),
                           [](const Lane& lane) { return lane.proposed; });
  }
  for (std::size_t device = 0; device < lanes_.size(); ++device) {
    wait_given(lanes_[device], proposed[device]);
  }
  return latest();
}

void Discards::ordered(std::size_t device, std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  lanes_[device].entries.ordered(id);
}

void Discards::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    lane.entries.forget(address, bytes);
  }
}

Discards::AwaitedOfLanes Discards::close_context(CUcontext context) noexcept {
  AwaitedOfLanes all;
  for (std::size_t device = 0; device < lanes_.size(); ++device) {
    Lane& lane = lanes_[device];
    std::uint64_t proposed = 0;
    {
      const std::lock_guard lock(mutex_);
      if (context && lane.context == context) {
        lane.closed = true;
        proposed = lane.proposed;
      }
    }
    if (proposed != 0) {
      wait_given(lane, proposed);
      const std::lock_guard lock(mutex_);
      all[device] = lane.last;
    }
  }
  return all;
}

void Discards::reopen_context(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    if (lane.context == context) {
      lane.closed = false;
    }
  }
}

void Discards::forget_context(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  for (Lane& lane : lanes_) {
    if (context && lane.context == context) {
      lane.entries.clear();
      lane.context = nullptr;
      lane.closed = false;
      lane.last = {};
    }
  }
}

}  // namespace deepum::runtime
