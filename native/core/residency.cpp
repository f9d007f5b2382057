#include "residency.hpp"

namespace deepum::core {

std::uint32_t Names::intern(std::uint64_t name) {
  const auto [place, fresh] = index_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (fresh) {
    names_.push_back({name, -1});
  }
  return place->second;
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
