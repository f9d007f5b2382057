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

void DeviceMemory::add(UmBlock& block) {
  block.resident = true;
  block.expected = false;
  block.migrated = ++migrations;
  kept.add(block);
}

void DeviceMemory::drop(UmBlock& block) {
  block.expected ? expected.remove(block) : kept.remove(block);
  --used_blocks;
  block.resident = block.expected = false;
}

void DeviceMemory::use(UmBlock& block, std::uint64_t position, bool expect) {
  if (block.expected && block.use_position >= position) {
    return;  // a launch placed keeps the place that it got then
  }
  block.use_position = position;
  if (!expect && !block.expected && kept.by_migration()) {
    return;  // uses aside
  }
  block.expected ? expected.remove(block) : kept.remove(block);
  expect ? expected.append(block) : kept.add(block);
  block.expected = expect;
}

void DeviceMemory::expect_none_until(std::uint64_t position) {
  for (UmBlock* block = expected.head(); block != nullptr && block->use_position <= position; block = expected.head()) {
    expected.remove(*block);
    kept.add(*block);
    block->expected = false;
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

std::uint64_t DeviceMemory::take_space() {
  ++used_blocks;
  // Space that was never used, or was freed with its allocation, goes first.
  const std::uint64_t unclaimed = capacity_blocks >= used_blocks ? capacity_blocks - used_blocks : 0;
  if (freed.empty() || unclaimed >= freed.size()) {
    return 0;
  }
  const std::uint64_t by = freed.front();
  freed.pop_front();
  return by;
}

}  // namespace deepum::core
