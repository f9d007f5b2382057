#include "discards.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <new>

namespace deepum::runtime {
namespace {

constexpr std::size_t kMostEntries = 1u << 16;
constexpr int kYields = 1000;
constexpr timespec kNap{0, 50000};

}  // namespace

// Never destroyed: the mover runs until the program's exit handlers, and memory may be freed after them.
Discards& Discards::instance() noexcept {
  alignas(Discards) static unsigned char memory[sizeof(Discards)];
  static Discards* const discards = new (memory) Discards;
  return *discards;
}

void Discards::abandon_in_child() noexcept { new (this) Discards; }

bool Discards::propose(std::uint64_t address, std::uint64_t bytes, std::uint64_t id) noexcept try {
  const std::lock_guard lock(mutex_);
  if (forbidden_ || entries_.size() >= kMostEntries) {
    return false;
  }
  // What it covers goes before it, in the same order as on the GPU.
  auto at = entries_.lower_bound(address);
  if (at != entries_.begin() && std::prev(at)->second.end > address) {
    --at;
  }
  while (at != entries_.end() && at->first < address + bytes) {
    at = entries_.erase(at);
  }
  entries_[address] = {address + bytes, id, nullptr, false};
  proposed_ = id;
  return true;
} catch (...) {
  return false;
}

void Discards::committed(std::uint64_t address, std::uint64_t id, CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(address);
  if (found != entries_.end() && found->second.id == id) {
    if (event) {
      found->second.event = event;
      found->second.given = true;
    } else {
      entries_.erase(found);
    }
  }
  if (event) {
    last_ = {id, event};
  }
  given_.store(id, std::memory_order_release);
}

// The mover is between two calls of the driver, or in one that takes its time. To go on without it would be to use memory that is about
// to be dropped.
void Discards::wait_given(std::uint64_t id) const noexcept {
  for (int tries = 0; given_.load(std::memory_order_acquire) < id && !ended_.load(std::memory_order_acquire); ++tries) {
    if (tries < kYields) {
      sched_yield();
    } else {
      ::nanosleep(&kNap, nullptr);
    }
  }
}

Discards::Awaited Discards::latest(std::uint64_t address, std::uint64_t bytes) noexcept {
  const auto find = [&] {
    const std::lock_guard lock(mutex_);
    Awaited found;
    auto at = entries_.lower_bound(address);
    if (at != entries_.begin() && std::prev(at)->second.end > address) {
      --at;
    }
    for (; at != entries_.end() && at->first < address + bytes; ++at) {
      if (at->second.id > std::max(found.id, ordered_)) {
        found = {at->second.id, at->second.event};
      }
    }
    return found;
  };
  Awaited found = find();
  if (found.id != 0 && found.event == nullptr) {
    wait_given(found.id);
    found = find();
    if (found.id != 0 && found.event == nullptr) {  // it ended before: behind everything that it gave the driver
      return latest();
    }
  }
  return found;
}

Discards::Awaited Discards::latest() noexcept {
  const std::lock_guard lock(mutex_);
  return last_;
}

Discards::Awaited Discards::forbid() noexcept {
  std::uint64_t proposed = 0;
  {
    const std::lock_guard lock(mutex_);
    forbidden_ = true;
    proposed = proposed_;
  }
  wait_given(proposed);
  return latest();
}

void Discards::ordered(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  ordered_ = std::max(ordered_, id);
  if (entries_.size() >= kMostEntries / 2) {
    std::erase_if(entries_, [this](const auto& entry) { return entry.second.id <= ordered_; });
  }
}

void Discards::forget_all() noexcept {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  last_ = {};
}

void Discards::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto first = entries_.lower_bound(address);
  entries_.erase(first, entries_.lower_bound(address + bytes));
}

}  // namespace deepum::runtime
