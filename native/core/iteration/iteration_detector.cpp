#include "iteration/iteration_detector.hpp"

#include <algorithm>
#include <utility>

namespace deepum::core {

void IterationDetector::search(std::uint64_t hash) {
  finder_.launched();
  if (recognise(hash)) {
    return;
  }
  if (repeats()) {
    take();
  }
}

// The latest launches are those of an iteration that came before.
bool IterationDetector::repeats() const {
  const std::uint64_t period = finder_.distance(), run = finder_.run();
  return period != 0 && (finder_.exact() >= period || run >= 2 * period) &&
         (finder_.on_same_memory() || is_certain(period)) && 2 * period <= launches_.size() &&
         run >= least_run(period) && !is_of_known(period);
}

// On whatever memory: tensors may take turns in it.
bool IterationDetector::is_certain(std::uint64_t period) const {
  return period >= kLeastWithWaits && finder_.run() >= kCertain * period && waited_in(period);
}

// A pattern from before is recognised when it was there from its first launch to its last.
bool IterationDetector::recognise(std::uint64_t hash) {
  for (Dropped& each : dropped_) {
    if (each.matched != 0) {
      each.matched = each.launches[each.matched] == hash ? each.matched + 1 : 0;
    }
    if (each.matched == 0 && launches_.context() == each.context) {
      each.matched = RecentLaunches::kContext;
    }
    if (each.matched == each.launches.size()) {
      held_.emplace(std::move(each.launches), 0);
      std::swap(each, dropped_.back());
      dropped_.pop_back();
      count(1, held_->period());
      counted_until_ = launches_.count();
      return true;
    }
  }
  return false;
}

bool IterationDetector::waited_in(std::uint64_t period) const {
  return waited_before_ != 0 && launches_.count() - waited_at_ <= period &&
         waited_at_ - waited_before_ <= period;
}

// What repeats is many iterations of one that is known and something between, as training and
// evaluation are, and that iteration may be at hand again.
bool IterationDetector::is_of_known(std::uint64_t period) const {
  return launches_.count() - dropped_at_ < period &&
         std::ranges::any_of(
             dropped_,
             [&](const Dropped& each) { return each.waits && each.launches.size() < period; });
}

std::uint64_t IterationDetector::least_run(std::uint64_t period) const {
  std::uint64_t least = kLeastWithWaits;
  if (!waited_in(period)) {
    const bool waits = waited_at_ != 0 && launches_.count() - waited_at_ <= kLeastOfLayers;
    const bool may_be_layers = period < kLongestLayer;
    least = waits || may_be_layers ? kLeastOfLayers : kLeastWithoutWaits;
    least = std::max(least, may_be_layers ? kMostLayers * period : 0);
  }
  return finder_.way_back() > period ? std::max(least, finder_.way_back()) : least;
}

void IterationDetector::count(std::uint64_t iterations, std::uint64_t period) {
  counted_ += iterations;
  counted_launches_ += iterations * period;
}

void IterationDetector::take() {
  const std::uint64_t period = finder_.distance();
  const std::uint64_t now = launches_.count();
  const std::uint64_t boundary = now - waited_at_ < period && waited_at_ != 0 ? waited_at_ : now;
  std::vector<std::uint64_t> launches;
  launches.reserve(period);
  for (std::uint64_t i = boundary - period; i < boundary; ++i) {
    launches.push_back(launches_.at(i).hash);
  }
  held_.emplace(std::move(launches), now - boundary);
  const std::uint64_t began = std::max(now - finder_.run() - period, counted_until_);
  if (counted_launches_ < period) {
    least_ = std::max(least_, std::exchange(counted_, 0));
    counted_launches_ = 0;
  }
  count(boundary > began ? (boundary - began) / period : 0, period);
  counted_until_ = boundary;
}

void IterationDetector::drop() {
  count(held_->ended(), held_->period());
  counted_until_ = launches_.count();
  finder_.restart(held_->period());
  dropped_at_ = launches_.count();
  const std::span launches = held_->launches();
  const bool waits = waited_in(2 * launches.size());
  if (launches.size() > RecentLaunches::kContext && (waits || launches.size() >= kLongestLayer)) {
    const std::uint64_t context =
        RecentLaunches::context_of(launches.first<RecentLaunches::kContext>());
    std::erase_if(dropped_, [&](const Dropped& other) {
      return other.context == context && other.launches.size() == launches.size();
    });
    if (dropped_.size() == kMostDropped) {
      dropped_.erase(dropped_.begin());
    }
    for (Dropped& each : dropped_) {
      each.matched = 0;
    }
    dropped_.push_back({{launches.begin(), launches.end()}, waits, context, 0});
  }
  held_.reset();
}

void IterationDetector::forget() {
  if (held_) {
    count(held_->ended(), held_->period());
  }
  held_.reset();
  dropped_.clear();
  launches_ = {};
  finder_.forget();
  counted_until_ = dropped_at_ = waited_at_ = waited_before_ = 0;
}

}  // namespace deepum::core
