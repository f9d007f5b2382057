#include "extras/pace_meter.hpp"

#include <utility>

namespace deepum::core {
namespace {

constexpr std::size_t kMostLaunches = 1 << 16;  // that are not known to have completed

}  // namespace

void PaceMeter::begin(std::uint64_t position, std::uint64_t iteration, std::uint64_t settling,
                      std::uint64_t measured) {
  iteration_ = iteration;
  measured_ = measured;
  from_ = position + settling * iteration;
  began_ = -1;
  since_ = {};
}

void PaceMeter::launched(std::uint64_t position, std::uint64_t sequence) {
  if (launches_.size() == kMostLaunches) {
    forget();  // nobody tells
  }
  launches_.push_back({sequence, position});
}

std::optional<double> PaceMeter::completed(std::uint64_t sequence, std::uint64_t at) {
  Point now{0, at};
  for (; !launches_.empty() && launches_.front().sequence <= sequence; launches_.pop_front()) {
    now.position = launches_.front().position;
  }
  has_times_ |= at != 0;
  if (at == 0 || now.position == 0) {
    return {};  // of a stream that is behind another
  }
  if (at < last_.at) {
    forget();  // counted from elsewhere
  }
  const Point before = std::exchange(last_, now);
  since_ = since_.position == 0 ? now : since_;
  return before.position != 0 ? measure(before, now) : std::nullopt;
}

// Looks come every so many launches; from one to the next it is taken to go on evenly.
std::optional<double> PaceMeter::measure(Point before, Point now) {
  const auto when = [&](std::uint64_t position) {
    const double part = static_cast<double>(position - before.position) /
                        static_cast<double>(now.position - before.position);
    return static_cast<double>(before.at) + part * static_cast<double>(now.at - before.at);
  };
  const std::uint64_t until = from_ + measured_ * iteration_;
  if (before.position <= from_ && from_ < now.position) {
    began_ = when(from_);
  } else if (before.position > from_ && began_ < 0) {
    from_ = now.position + iteration_;  // it was missed
    return {};
  }
  if (before.position <= until && until < now.position && began_ >= 0) {
    return (when(until) - began_) / static_cast<double>(until - from_);
  }
  return {};
}

void PaceMeter::forget() {
  launches_.clear();
  last_ = since_ = {};
  began_ = -1;
}

void PaceMeter::stop() { *this = PaceMeter(); }

}  // namespace deepum::core
