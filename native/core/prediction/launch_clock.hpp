// When launches had completed, by the GPU's clock, as PROGRESS events say, and how long they had
// waited for moves: every so many launches, and only while it is wanted.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "core.h"

namespace deepum::core {

class LaunchClock {
 public:
  void want(bool wanted) {
    wanted_ = wanted;
    if (!wanted) {
      pending_.clear();
      times_.clear();
    }
  }
  bool wanted() const { return wanted_; }

  void launched(EventSequence sequence, LaunchIndex launch, std::uint32_t stream) {
    if (!wanted_) {
      return;
    }
    pending_.push_back({sequence, launch, stream});
    if (pending_.size() > kMostPending) {
      pending_.pop_front();
    }
  }
  // All launches of the stream up to `completed` had been done at that time.
  void completed(const deepum_progress_event& event) {
    if (!wanted_ || event.completed_at == 0) {
      return;
    }
    LaunchIndex latest = 0;
    std::erase_if(pending_, [&](const Pending& each) {
      const bool done = each.sequence <= event.completed && each.stream == event.stream;
      latest = done ? each.launch : latest;
      return done;
    });
    if (latest != 0 && times_.size() < kMostTimes) {
      times_.push_back({latest, event.completed_at, waited_[event.stream]});
    }
  }
  // Comes before the PROGRESS event of the same look.
  void waited(const deepum_waited_event& event) {
    if (event.stream < waited_.size()) {
      waited_[event.stream] = event.waited;
    }
  }
  // Those since it was asked before.
  std::vector<deepum_launch_time> take() { return std::exchange(times_, {}); }

 private:
  static constexpr std::array<std::uint64_t, DEEPUM_MAX_STREAMS> no_reports() {
    std::array<std::uint64_t, DEEPUM_MAX_STREAMS> made{};
    made.fill(UINT64_MAX);
    return made;
  }
  static constexpr std::size_t kMostPending = 1 << 16;
  static constexpr std::size_t kMostTimes = 1 << 16;
  struct Pending {
    EventSequence sequence;
    LaunchIndex launch;
    std::uint32_t stream;
  };
  bool wanted_ = false;
  std::array<std::uint64_t, DEEPUM_MAX_STREAMS> waited_ = no_reports();
  std::deque<Pending> pending_;  // launches of which it is not known that they are done
  std::vector<deepum_launch_time> times_;
};

}  // namespace deepum::core
