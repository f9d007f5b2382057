// A plan of an iteration: where in an arena each of its requests is served.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "recorder.hpp"

namespace deepum::arena_allocator {

struct Plan {
  std::vector<std::uint64_t> hashes;
  std::vector<std::int64_t> offsets;  // -1: it has none
  const void* stream = nullptr;       // of all that have one
  std::int64_t height = 0;
  std::int64_t load = 0;  // the most bytes with offsets that live at one time
  std::int64_t excluded_bytes = 0;
  std::size_t rotated = 0;  // requests of the iteration as it was given that are at the end now
  double seconds = 0;
};

// The iteration is cut where the fewest bytes live across, and the arena is searched for so many
// seconds (native/arena/search.hpp). What lives across the cut has its place throughout. What lives
// longer than an iteration, or is of another stream than most, has none. Nothing: it has no
// buffers, or memory is short.
std::optional<Plan> make_plan(const std::vector<Request>& iteration, double seconds);

// One plan at a time, in a thread of its own or at once.
class PlanMaker {
 public:
  void start(std::vector<Request> iteration, double seconds, bool in_background);
  bool is_busy() const { return job_ != nullptr; }
  // The plan that was started, once. Where there is none to be had it is empty.
  std::optional<std::optional<Plan>> finished();

 private:
  // Shared with the thread, which may outlive all else.
  struct Job {
    std::mutex mutex;
    bool done = false;
    std::optional<Plan> plan;
  };

  std::shared_ptr<Job> job_;
};

}  // namespace deepum::arena_allocator
