// What happened and when, for charts: the machine's activities, and what only the replay knows.
#include <algorithm>

#include "replay.hpp"

namespace deepum::simulate {

// One record for each kind of command that an event caused: there may be thousands of commands.
void Replay::note_decisions(std::span<const deepum_command> commands) {
  for (const deepum_command& command : commands) {
    const auto known =
        std::find_if(decisions_.rbegin(), decisions_.rend(), [&](const deepum_activity& one) {
          return one.tag != traced_ ||
                 (one.command == command.kind && one.device == command.device);
        });
    const bool first = known == decisions_.rend() || known->tag != traced_;
    if (first) {
      deepum_activity made{};
      made.kind = DEEPUM_ACTIVITY_DECISION;
      made.device = command.device;
      made.command = command.kind;
      made.tag = traced_;
      made.start_ns = made.end_ns = now();
      decisions_.push_back(made);
    }
    deepum_activity& decision = first ? decisions_.back() : *known;
    ++decision.count;
    decision.bytes += std::uint64_t{command.block_count} * kBlockBytes;
  }
}

std::size_t Replay::take_activities(std::span<deepum_activity> into) {
  if (activities_taken_ == activities_.size()) {
    activities_ = engine_.take_activities();
    activities_taken_ = 0;
    activities_.insert(activities_.end(), decisions_.begin(), decisions_.end());
    decisions_.clear();
    if (options_.keep_activities != 0) {
      for (; holds_reported_ < timed_.size(); ++holds_reported_) {
        const Timed& timed = timed_[holds_reported_];
        const double reached = engine_.event_time(timed.reached),
                     ready = engine_.event_time(timed.ready);
        if (ready > reached) {  // not for NaN: incomplete
          deepum_activity made{};
          made.kind = DEEPUM_ACTIVITY_HOLD;
          made.count = 1;
          made.tag = timed.tag;
          made.start_ns = reached;
          made.end_ns = ready;
          activities_.push_back(made);
        }
      }
    }
  }
  const std::size_t count = std::min(into.size(), activities_.size() - activities_taken_);
  std::copy_n(activities_.begin() + static_cast<std::ptrdiff_t>(activities_taken_), count,
              into.begin());
  activities_taken_ += count;
  return count;
}

}  // namespace deepum::simulate
