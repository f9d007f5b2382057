#include "extents.hpp"

namespace deepum::simgpu {

Extents& Extents::of_process() {
  static Extents* const extents = new Extents;  // never destroyed: launches may come during exit
  return *extents;
}

void Extents::note(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::size_t kMost = 1u << 18;
  const std::lock_guard lock(mutex_);
  if (bytes_.size() >= kMost) bytes_.clear();
  bytes_[address] = bytes;
}

std::uint64_t Extents::bytes_at(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = bytes_.find(address);
  return found == bytes_.end() ? 0 : found->second;
}

}  // namespace deepum::simgpu
