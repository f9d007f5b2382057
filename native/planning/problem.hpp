// One iteration of a program that repeats, as planners see it: launches with their times, items of
// content that are moved whole, and for each item the gaps between its uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planning.h"

namespace deepum::planning {

// An item from one use to the next; `end` may lie in the next iteration, so that
// start < end <= start + launches.
struct Gap {
  std::int32_t item;
  std::int32_t start;
  std::int32_t end;
  // Launch before which the program gives the content up, start < death <= end; kNone: it lives.
  std::int32_t death;
  // Launch that wrote the content last, at most `start`, negative in an earlier iteration; kNone:
  // the host has the same content from the beginning.
  std::int32_t writer;
  std::int32_t version;  // of the content: gaps behind the same write share one
  bool fetches;          // the use at `end` needs the content
};
inline constexpr std::int32_t kNone = INT32_MIN;

class Problem {
 public:
  // Events of an item are in order; an item without a use has no gap. Nothing if a launch, an item
  // or a rate is out of range.
  static std::optional<Problem> make(const deepum_planning_machine& machine,
                                     std::span<const double> launch_ns,
                                     std::span<const std::int64_t> item_bytes,
                                     std::span<const deepum_planning_event> events);

  std::int32_t launches() const { return static_cast<std::int32_t>(launch_ns_.size()); }
  std::int64_t memory() const { return machine_.memory_bytes; }
  bool copies_early() const { return machine_.copies_early != 0; }
  double fetch_ns(std::int32_t item) const { return bytes(item) / machine_.in_bytes_per_ns; }
  double copy_ns(std::int32_t item) const { return bytes(item) / machine_.out_bytes_per_ns; }
  double launch_ns(std::int32_t launch) const { return launch_ns_[launch]; }
  std::int64_t bytes(std::int32_t item) const { return item_bytes_[item]; }
  std::int32_t items() const { return static_cast<std::int32_t>(item_bytes_.size()); }
  std::span<const Gap> gaps() const { return gaps_; }
  const Gap& gap(std::int32_t index) const { return gaps_[index]; }
  // Indices of gaps: those that begin with that launch, those that end with it, those whose content
  // ends before it, and those of a version.
  std::span<const std::int32_t> beginning(std::int32_t launch) const { return beginning_[launch]; }
  std::span<const std::int32_t> ending(std::int32_t launch) const { return ending_[launch]; }
  std::span<const std::int32_t> dying(std::int32_t launch) const { return dying_[launch]; }
  std::span<const std::int32_t> of_version(std::int32_t version) const {
    return of_version_[version];
  }
  std::int32_t versions() const { return static_cast<std::int32_t>(of_version_.size()); }

  // First launch behind `gap.start` at which the item is not on the device.
  static std::int32_t there_until(const Gap& gap, bool evicted) {
    return evicted ? gap.start + 1 : gap.death != kNone ? gap.death : gap.end;
  }
  // Bytes on the device at each launch of that many iterations, with the plan.
  std::vector<std::int64_t> occupancy(std::span<const std::uint8_t> evicted,
                                      std::int32_t iterations) const;

 private:
  using Lists = std::vector<std::vector<std::int32_t>>;
  void add_item(std::int32_t item, std::span<const deepum_planning_event> events);

  deepum_planning_machine machine_{};
  std::vector<double> launch_ns_;
  std::vector<std::int64_t> item_bytes_;
  std::vector<Gap> gaps_;
  Lists beginning_, ending_, dying_, of_version_;
};

}  // namespace deepum::planning
