#include "iteration/repeat_finder.hpp"

#include <algorithm>

namespace deepum::core {

// All launches are kept until the table has its full size.
void RepeatFinder::grow() {
  last_.assign(2 * last_.size(), 0);
  --shift_;
  RecentLaunches again;
  for (std::uint64_t i = 0; i + 1 < launches_.count(); ++i) {
    again.append(launches_.at(i));
    last_[index_of(again.context())] = static_cast<std::uint32_t>(again.count());
  }
}

void RepeatFinder::launched() {
  const std::uint64_t noted = way_back_of_latest();
  const std::uint64_t latest = launches_.count() - 1;
  const auto same = [&](std::uint64_t distance) {
    return distance != 0 && distance < launches_.size() &&
           launches_.at(latest - distance).hash == launches_.at(latest).hash;
  };
  const std::uint64_t back = same(noted) ? noted : 0;
  note_way_back(back);
  if (same(distance_)) {
    ++run_;
    ++exact_;
    note_names(launches_.at(latest), launches_.at(latest - distance_));
    odd_in_row_ = 0;
    odd_ = run_ % distance_ == 0 ? 0 : odd_;
  } else if (is_exact(back) || !tolerate()) {
    follow(back);
  }
}

// All of a longer period repeats where at the present distance a launch is odd: it is in every
// second step only, say.
bool RepeatFinder::is_exact(std::uint64_t period) const {
  if (period <= distance_ || distance_ == 0 || 2 * period > launches_.size()) {
    return false;
  }
  const std::uint64_t latest = launches_.count() - 1;
  std::uint64_t run = 0;
  while (run < period &&
         launches_.at(latest - run).hash == launches_.at(latest - run - period).hash) {
    ++run;
  }
  return run == period;
}

// The latest launch differs.
bool RepeatFinder::tolerate() {
  if (distance_ == 0 || distance_ >= launches_.size() || ++odd_in_row_ > kMostInARow ||
      ++odd_ > distance_ / kOddShare) {
    return false;
  }
  ++run_;
  exact_ = 0;
  return true;
}

// The run at that distance begins where launches differ.
void RepeatFinder::follow(std::uint64_t distance) {
  distance_ = distance;
  run_ = named_ = same_names_ = odd_ = odd_in_row_ = 0;
  const std::uint64_t latest = launches_.count() - 1;
  while (distance_ != 0 && run_ + distance_ < launches_.size()) {
    const RecentLaunches::Launch &now = launches_.at(latest - run_),
                                 &before = launches_.at(latest - run_ - distance_);
    if (now.hash != before.hash) {
      break;
    }
    ++run_;
    note_names(now, before);
  }
  exact_ = run_;
}

void RepeatFinder::note_way_back(std::uint64_t way_back) {
  if (way_back >= way_back_ || launches_.count() - way_back_at_ > 2 * way_back_) {
    way_back_ = way_back;
    way_back_at_ = launches_.count();
  }
}

void RepeatFinder::restart(std::uint64_t way_back) {
  distance_ = run_ = exact_ = named_ = same_names_ = odd_ = odd_in_row_ = 0;
  way_back_ = way_back;
  way_back_at_ = launches_.count();
}

void RepeatFinder::forget() {
  last_.assign(kFirstEntries, 0);
  shift_ = kFirstShift;
  restart(0);
}

}  // namespace deepum::core
