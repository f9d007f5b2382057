#include "problem.hpp"

#include <algorithm>

namespace deepum::planning {

std::optional<Problem> Problem::make(const deepum_planning_machine& machine,
                                     std::span<const double> launch_ns,
                                     std::span<const std::int64_t> item_bytes,
                                     std::span<const deepum_planning_event> events) {
  constexpr std::size_t kMost = 1u << 28;
  if (launch_ns.empty() || launch_ns.size() > kMost || item_bytes.size() > kMost ||
      machine.memory_bytes <= 0 || !(machine.in_bytes_per_ns > 0) ||
      !(machine.out_bytes_per_ns > 0)) {
    return std::nullopt;
  }
  Problem made;
  made.machine_ = machine;
  made.launch_ns_.assign(launch_ns.begin(), launch_ns.end());
  made.item_bytes_.assign(item_bytes.begin(), item_bytes.end());
  std::vector<std::vector<deepum_planning_event>> by_item(item_bytes.size());
  for (const deepum_planning_event& event : events) {
    if (event.item < 0 || event.item >= made.items() || event.launch < 0 ||
        event.launch >= made.launches()) {
      return std::nullopt;
    }
    std::vector<deepum_planning_event>& mine = by_item[event.item];
    if (!mine.empty() &&
        (event.launch < mine.back().launch ||
         (event.launch == mine.back().launch && event.kind == DEEPUM_PLANNING_DEATH))) {
      return std::nullopt;
    }
    mine.push_back(event);
  }
  for (std::int32_t item = 0; item < made.items(); ++item) {
    made.add_item(item, by_item[item]);
  }
  made.beginning_.resize(launch_ns.size());
  made.ending_.resize(launch_ns.size());
  made.dying_.resize(launch_ns.size());
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(made.gaps_.size()); ++index) {
    const Gap& gap = made.gaps_[index];
    made.beginning_[gap.start].push_back(index);
    made.ending_[gap.end % made.launches()].push_back(index);
    if (gap.death != kNone) {
      made.dying_[gap.death % made.launches()].push_back(index);
    }
  }
  return made;
}

// The iteration repeats, so that what is written before its first use is the last iteration's: a
// first round over the events finds the writer, a second one makes the gaps.
void Problem::add_item(std::int32_t item, std::span<const deepum_planning_event> events) {
  const std::size_t count = events.size();
  std::vector<std::size_t> uses;
  for (std::size_t i = 0; i < count; ++i) {
    if (events[i].kind == DEEPUM_PLANNING_USE) {
      uses.push_back(i);
    }
  }
  if (uses.empty()) {
    return;
  }
  // The first death behind a use and before the next one, or at it; in the next iteration a launch
  // counts for later by the whole iteration.
  const auto death_behind = [&](std::size_t use, std::size_t next_use) {
    const std::size_t until = next_use <= use ? count + next_use : next_use;
    for (std::size_t i = use + 1; i < until; ++i) {
      const bool later = i >= count;  // in the next iteration
      const deepum_planning_event& event = events[later ? i - count : i];
      if (event.kind == DEEPUM_PLANNING_DEATH) {
        return event.launch + (later ? launches() : 0);
      }
    }
    return kNone;
  };
  std::int32_t writer = kNone;
  for (const std::size_t use : uses) {
    const std::size_t next =
        use == uses.back() ? uses.front() : *std::upper_bound(uses.begin(), uses.end(), use);
    writer = events[use].writes != 0 ? events[use].launch : writer;
    writer = death_behind(use, next) != kNone ? kNone : writer;
  }
  writer -= writer != kNone ? launches() : 0;
  const std::int32_t carried = writer;  // from the iteration before
  const std::size_t first_gap = gaps_.size();
  std::int32_t version = -1;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const deepum_planning_event& use = events[uses[i]];
    const bool wraps = i + 1 == uses.size();
    const deepum_planning_event& after = events[uses[wraps ? 0 : i + 1]];
    const std::int32_t death = death_behind(uses[i], uses[wraps ? 0 : i + 1]);
    if (use.writes != 0 || version < 0) {
      version = versions();
      of_version_.emplace_back();
      writer = use.writes != 0 ? use.launch : writer;
    }
    gaps_.push_back({.item = item,
                     .start = use.launch,
                     .end = after.launch + (wraps ? launches() : 0),
                     .death = death,
                     .writer = writer,
                     .version = version,
                     .fetches = death == kNone && after.reads != 0});
    of_version_[version].push_back(static_cast<std::int32_t>(gaps_.size() - 1));
    writer = death != kNone ? kNone : writer;
  }
  // The gaps before the first write are of the last version, of the iteration before.
  const std::int32_t first_version = gaps_[first_gap].version;
  if (events[uses.front()].writes == 0 && carried != kNone && version != first_version) {
    for (const std::int32_t index : of_version_[first_version]) {
      gaps_[index].version = version;
      of_version_[version].push_back(index);
    }
    of_version_[first_version].clear();
  }
}

std::vector<std::int64_t> Problem::occupancy(std::span<const std::uint8_t> evicted,
                                             std::int32_t iterations) const {
  const std::int32_t total = launches() * (iterations + 1);
  std::vector<std::int64_t> change(total + 1, 0);
  for (std::size_t index = 0; index < gaps_.size(); ++index) {
    const Gap& gap = gaps_[index];
    for (std::int32_t i = -1; i <= iterations; ++i) {
      const std::int32_t shift = i * launches();
      const std::int32_t first = std::clamp(gap.start + shift, 0, total);
      const std::int32_t last = std::clamp(there_until(gap, evicted[index] != 0) + shift, 0, total);
      if (first < last) {
        change[first] += bytes(gap.item);
        change[last] -= bytes(gap.item);
      }
    }
  }
  std::vector<std::int64_t> there(total);
  std::int64_t sum = 0;
  for (std::int32_t launch = 0; launch < total; ++launch) {
    there[launch] = sum += change[launch];
  }
  return there;
}

}  // namespace deepum::planning
