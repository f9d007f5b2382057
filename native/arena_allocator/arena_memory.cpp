#include "arena_memory.hpp"

#include <iterator>

namespace deepum::arena_allocator {

bool ArenaMemory::take(std::int64_t offset, std::int64_t bytes) {
  const std::int64_t end = offset + bytes;
  if (offset < 0 || end > bytes_) {
    return false;
  }
  const auto behind = taken_.lower_bound(offset);
  if ((behind != taken_.end() && behind->first < end) ||
      (behind != taken_.begin() && std::prev(behind)->second > offset)) {
    return false;
  }
  taken_.emplace_hint(behind, offset, end);
  live_bytes_ += bytes;
  return true;
}

std::optional<std::int64_t> ArenaMemory::take_anywhere(std::int64_t bytes) {
  std::optional<std::int64_t> best;
  std::int64_t least = bytes_ + 1;
  std::int64_t begin = 0;
  const auto look = [&](std::int64_t end) {
    if (end - begin >= bytes && end - begin < least) {
      least = end - begin;
      best = begin;
    }
  };
  for (const auto& [offset, end] : taken_) {
    look(offset);
    begin = end;
  }
  look(bytes_);
  if (best) {
    take(*best, bytes);
  }
  return best;
}

void ArenaMemory::give_back(std::int64_t offset) {
  const auto found = taken_.find(offset);
  live_bytes_ -= found->second - offset;
  taken_.erase(found);
}

}  // namespace deepum::arena_allocator
