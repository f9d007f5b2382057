// The arena: one range of the driver's, and what of it is in use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace deepum::arena_allocator {

class ArenaMemory {
 public:
  explicit ArenaMemory(std::int64_t bytes) : bytes_(bytes) {}

  // False: some of it is in use, or lies outside.
  bool take(std::int64_t offset, std::int64_t bytes);
  // In the smallest gap that is large enough, the lowest of several.
  std::optional<std::int64_t> take_anywhere(std::int64_t bytes);
  void give_back(std::int64_t offset);  // that was taken

  std::int64_t bytes() const { return bytes_; }
  std::int64_t live_bytes() const { return live_bytes_; }

 private:
  std::int64_t bytes_;
  std::int64_t live_bytes_ = 0;
  std::map<std::int64_t, std::int64_t> taken_;  // ends, by offset
};

}  // namespace deepum::arena_allocator
