// How many blocks of content there will be more, at most, on the way through the launches to come
// that are placed: what is fetched for them now must leave that much room. Each launch costs the
// same, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace deepum::core {

class GrowthAhead {
 public:
  // The next launch, by its place in the history; less than nothing: content dies.
  void add(std::uint64_t place, std::int64_t blocks) {
    total_ += blocks;
    while (!peaks_.empty() && peaks_.back().total <= total_) {
      peaks_.pop_back();
    }
    peaks_.push_back({place, total_});
    while (!troughs_.empty() && troughs_.back().total >= total_) {
      troughs_.pop_back();
    }
    troughs_.push_back({place, total_});
  }
  // The first of them was launched.
  void pass(std::uint64_t place, std::int64_t blocks) {
    passed_ += blocks;
    if (!peaks_.empty() && peaks_.front().place == place) {
      peaks_.pop_front();
    }
    if (!troughs_.empty() && troughs_.front().place == place) {
      troughs_.pop_front();
    }
  }
  void clear() { *this = {}; }
  std::uint64_t most() const {
    return peaks_.empty() || peaks_.front().total <= passed_
               ? 0
               : static_cast<std::uint64_t>(peaks_.front().total - passed_);
  }
  // What has come into being by the last of them since there was the least.
  std::uint64_t rise() const {
    return troughs_.empty()
               ? 0
               : static_cast<std::uint64_t>(total_ - std::min(troughs_.front().total, passed_));
  }

 private:
  struct Turn {
    std::uint64_t place;
    std::int64_t total;  // of all launches up to there
  };
  std::int64_t total_ = 0, passed_ = 0;
  std::deque<Turn> peaks_;    // falling
  std::deque<Turn> troughs_;  // rising
};

}  // namespace deepum::core
