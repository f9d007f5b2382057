// The latest requests of a device with their lifetimes, and whether they are iterations of
// something: the last ones equal those that came as many before (core::RepeatFinder, for
// launches), and as much is in use as then. Time is counted in requests: offsets matter at
// requests alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "iteration/recent_launches.hpp"
#include "iteration/repeat_finder.hpp"

namespace deepum::arena_allocator {

// A request's size and stream.
inline std::uint64_t request_hash(std::int64_t bytes, const void* stream) {
  std::uint64_t hash = static_cast<std::uint64_t>(bytes) * 0x9e3779b97f4a7c15ull;
  hash ^= reinterpret_cast<std::uintptr_t>(stream) * 0xd1342543de82ef95ull;
  return hash ^ hash >> 29;
}

// A request of an iteration. lifetime: the requests from it on, itself included, at which it is
// in use; 0: more than an iteration's.
struct Request {
  std::uint64_t hash;
  std::int64_t bytes;
  std::uint64_t lifetime;
  const void* stream;
};

class Recorder {
 public:
  // Returns the request's number.
  std::uint64_t requested(std::int64_t bytes, const void* stream);
  void freed(std::uint64_t number, std::int64_t bytes);
  // The latest requests, where they are an iteration, from the first to the latest.
  std::optional<std::vector<Request>> iteration() const;
  std::uint64_t count() const { return requests_.count(); }

 private:
  static constexpr std::uint64_t kLeast = 64;   // requests over which a repetition goes on
  static constexpr std::int64_t kSteady = 256;  // a part of what is in use that may differ

  struct Made {
    std::int64_t bytes;
    const void* stream;
    std::uint64_t end;        // number of the first request behind its end; 0: it lives
    std::int64_t live_bytes;  // handed out before it
  };

  bool is_steady(std::uint64_t period) const;
  std::uint64_t first() const { return count() - made_.size(); }
  const Made& made(std::uint64_t number) const { return made_[number - first()]; }

  core::RecentLaunches requests_;
  core::RepeatFinder finder_{requests_};
  std::deque<Made> made_;  // as many as requests_ keeps
  std::int64_t live_bytes_ = 0;
};

}  // namespace deepum::arena_allocator
