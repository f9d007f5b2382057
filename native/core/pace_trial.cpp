#include "pace_trial.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kLearning = 9;          // iterations: what leaves is learned one use further back with each
constexpr std::uint64_t kSettling = 3;          // iterations, after which nothing is as it was before
constexpr std::uint64_t kMeasured = 3;          // iterations
constexpr std::uint64_t kAlike = 8;             // part of an iteration by which others may be longer or shorter
constexpr std::uint32_t kMostChanges = 64;      // of that length, after which nothing is expected to repeat
constexpr std::size_t kMostLaunches = 1 << 16;  // that are not known to have completed

}  // namespace

void PaceTrial::begin(Phase phase, std::uint64_t position, std::uint64_t settling) {
  phase_ = phase;
  from_ = position + settling * iteration_;
  began_ = -1;
  copies_ = copied_;
}

void PaceTrial::launched(std::uint64_t position, std::uint64_t sequence, std::uint64_t iteration, std::uint64_t copied) {
  position_ = position;
  if (over() || iteration == 0) {
    return;
  }
  copied_ = copied;
  const std::uint64_t change = iteration > iteration_ ? iteration - iteration_ : iteration_ - iteration;
  if (change > iteration_ / kAlike) {
    iteration_ = iteration;
    begin(Phase::kWith, position, kLearning);
    if (++changes_ > kMostChanges) {
      from_ = 0;
      decide(Phase::kBetterWith);
      return;
    }
  }
  if (launches_.size() == kMostLaunches) {
    forget();  // nobody tells
  }
  launches_.push_back({sequence, position});
}

void PaceTrial::completed(std::uint64_t sequence, std::uint64_t at) {
  if (over()) {
    return;
  }
  Point now{0, at};
  for (; !launches_.empty() && launches_.front().sequence <= sequence; launches_.pop_front()) {
    now.position = launches_.front().position;
  }
  told_ |= at != 0;
  if (at == 0 || now.position == 0) {
    return;  // of a stream that is behind another
  }
  if (at < last_.at) {
    forget();  // counted from elsewhere
  }
  if (last_.position != 0) {
    measure(last_, now);
  }
  last_ = now;
}

// Looks come every so many launches; from one to the next it is taken to go on evenly.
void PaceTrial::measure(Point before, Point now) {
  const auto when = [&](std::uint64_t position) {
    const double part = static_cast<double>(position - before.position) / static_cast<double>(now.position - before.position);
    return static_cast<double>(before.at) + part * static_cast<double>(now.at - before.at);
  };
  const std::uint64_t until = from_ + kMeasured * iteration_;
  if (before.position <= from_ && from_ < now.position) {
    began_ = when(from_);
  } else if (before.position > from_ && began_ < 0) {
    from_ = now.position + iteration_;  // it was missed
    return;
  }
  if (before.position <= until && until < now.position && began_ >= 0) {
    end((when(until) - began_) / static_cast<double>(until - from_));
  }
}

void PaceTrial::end(double pace) {
  if (phase_ == Phase::kWithout) {
    from_ = position_ + kSettling * iteration_;
    decide(pace < with_ ? Phase::kBetterWithout : Phase::kBetterWith);
  } else if (copied_ == copies_) {
    begin(Phase::kWith, last_.position, kLearning);  // there is nothing to compare yet
  } else {
    with_ = pace;
    // Of what was launched already all is as it was.
    begin(Phase::kWithout, launches_.empty() ? last_.position : launches_.back().position, kSettling);
  }
}

void PaceTrial::decide(Phase phase) {
  phase_ = phase;
  launches_.clear();
}

void PaceTrial::forget() {
  launches_.clear();
  last_ = {0, 0};
  began_ = -1;
}

}  // namespace deepum::core
