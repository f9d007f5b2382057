// What a plan takes when it is carried out, to the nanosecond: launches one after the other, and
// one transfer at a time in each direction.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "planning.h"
#include "problem.hpp"
#include "range_maximum.hpp"

namespace deepum::planning {

// What happens over all iterations, and when the measured one begins and ends.
struct Timeline {
  std::vector<deepum_planning_transfer> transfers;
  std::vector<deepum_planning_level> levels;
  double began = 0, ended = 0;

  // Leaves the measured iteration alone, in ns from its beginning.
  void cut_to_measured();
};

class Replay {
 public:
  Replay(const Problem& problem, std::span<const std::uint8_t> plan,
         const deepum_planning_options& options);

  // Each may be empty, or has a number for each launch, `fetched_behind`, `copied_behind` and
  // `left` for each gap.
  deepum_planning_result run(std::span<double> stall_ns, std::span<double> ends_ns,
                             std::span<std::int32_t> fetched_behind = {},
                             std::span<std::int32_t> copied_behind = {},
                             std::span<std::uint8_t> left = {});
  // The same, and what happens is written down. Nothing where a launch could never run.
  Timeline timeline();

 private:
  static constexpr std::int32_t kIterations = 3;  // of which the last is measured

  enum class Place : std::uint8_t { kDevice, kLeaving, kHost, kComing };
  struct Item {
    Place place = Place::kHost;
    std::int32_t gap = -1;  // in which it is
  };
  struct Version {
    // Launches from the write to the first eviction; kNone: it is not evicted.
    std::int32_t leaves_after = kNone;
    std::int32_t written = kNone;  // launch, counted over all iterations; kNone: it ended
    bool copied = false;           // since then
  };
  struct Copy {  // that is wanted: the first to leave first
    std::int32_t leaves, version, written;
    bool operator>(const Copy& other) const { return leaves > other.leaves; }
  };
  struct Transfer {
    double until = 0;
    std::int32_t item = -1;  // -1: the direction is idle
    std::int32_t version = -1;
    std::int32_t written = kNone;
    bool busy() const { return item >= 0; }
  };
  struct Fetch {
    std::int32_t need;  // launch, counted over all iterations
    std::int32_t gap;
  };

  void begin();
  bool start_kernel(std::span<double> stall_ns);
  bool start_copy();
  bool start_fetch();
  void note_copy(const Copy& copy);
  void end_transfers();
  void end_kernel();
  void leave(Item& item, std::int32_t index);
  void evict(Item& item, std::int32_t index);
  void take(std::int64_t bytes);
  bool measuring() const { return launch_ >= (kIterations - 1) * problem_.launches(); }
  std::int32_t in_iteration() const { return launch_ % problem_.launches(); }

  const Problem& problem_;
  std::span<const std::uint8_t> plan_;
  deepum_planning_options options_;
  RangeMaximum planned_;  // bytes on the device, by the plan, over all iterations
  std::vector<Item> items_;
  std::vector<Version> versions_;
  std::vector<Fetch> fetches_;  // in order of need
  std::size_t next_fetch_ = 0;
  std::priority_queue<Copy, std::vector<Copy>, std::greater<>> copies_;
  Transfer in_, out_;
  std::int64_t free_ = 0;
  std::int32_t launch_ = 0;  // that runs, or is next, counted over all iterations
  bool running_ = false;
  bool has_room_ = false;  // for what it does not fetch
  double now_ = 0, kernel_until_ = 0, ready_since_ = 0;
  std::span<std::int32_t> fetched_behind_, copied_behind_;
  std::span<std::uint8_t> left_;
  Timeline* timeline_ = nullptr;  // that is written, if any
  deepum_planning_result result_{};
};

}  // namespace deepum::planning
