#include "residency.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kMistake = 4;  // blocks by which one narrows the window

}  // namespace

std::uint32_t Names::intern(std::uint64_t name) {
  const auto [place, fresh] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) {
    names_.push_back({name, -1});
  }
  return place->second;
}

void DeviceMemory::take_out(UmBlock& block) {
  if (block.place == BlockPlace::kKept) {
    kept.remove(block);
  } else {
    (block.place == BlockPlace::kExpected ? expected : dead).remove(block);
  }
}

void DeviceMemory::put(UmBlock& block, BlockPlace place) {
  take_out(block);
  block.place = place;
  if (place == BlockPlace::kKept) {
    kept.add(block);
  } else {
    (place == BlockPlace::kExpected ? expected : dead).append(block);
  }
}

void DeviceMemory::add(UmBlock& block) {
  block.resident = true;
  block.place = BlockPlace::kKept;
  block.migrated = ++migrations;
  kept.add(block);
}

void DeviceMemory::drop(UmBlock& block) {
  take_out(block);
  --used_blocks;
  block.resident = false;
  block.place = BlockPlace::kKept;
}

void DeviceMemory::use(UmBlock& block, std::uint64_t position, bool expect) {
  if (block.place == BlockPlace::kExpected && block.use_position >= position) {
    return;  // a launch placed keeps the place that it got then
  }
  block.use_position = position;
  if (!expect && block.place == BlockPlace::kKept && kept.by_migration()) {
    return;  // uses aside
  }
  put(block, expect ? BlockPlace::kExpected : BlockPlace::kKept);
}

void DeviceMemory::expect_none_until(std::uint64_t position) {
  for (UmBlock* block = expected.head(); block != nullptr && block->use_position <= position; block = expected.head()) {
    put(*block, BlockPlace::kKept);
  }
}

void DeviceMemory::widen_window() {
  withheld_blocks -= std::min<std::uint64_t>(withheld_blocks, window_full ? 1 : 0);
  window_full = false;
}

void DeviceMemory::narrow_window() {
  const std::uint64_t wide = capacity_blocks - std::min(capacity_blocks, expected.size());
  withheld_blocks = std::max(withheld_blocks, wide) + kMistake;
}

Space DeviceMemory::take_space() {
  ++used_blocks;
  // Space that was never used, or was freed with its allocation, goes first.
  const std::uint64_t unclaimed = capacity_blocks >= used_blocks ? capacity_blocks - used_blocks : 0;
  if (freed.empty() || unclaimed >= freed.size()) {
    return {};
  }
  const Space space = freed.front();
  freed.pop_front();
  return space;
}

}  // namespace deepum::core
