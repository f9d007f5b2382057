// How long launches take, by what is told of the GPU's time at each look for faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace deepum::core {

class PaceMeter {
 public:
  // So many iterations of that length are timed, the first `settling` of them not counted, behind
  // the `position`-th launch, the latest.
  void begin(std::uint64_t position, std::uint64_t iteration, std::uint64_t settling,
             std::uint64_t measured);
  void launched(std::uint64_t position, std::uint64_t sequence);
  // All launches of a stream up to that sequence had completed at that time of the GPU, in
  // microseconds; 0: not known. What a launch took of those to be timed, once, when they are over.
  std::optional<double> completed(std::uint64_t sequence, std::uint64_t at);
  void forget();  // launches or times were missed
  void stop();    // they are not wanted any longer

  bool has_times() const { return has_times_; }
  // Since it began, as far as it is told: microseconds, and launches that had completed by then.
  double taken() const {
    return since_.position != 0 ? static_cast<double>(last_.at - since_.at) : 0;
  }
  std::uint64_t passed() const {
    return since_.position != 0 ? last_.position - since_.position : 0;
  }

 private:
  struct Point {
    std::uint64_t position = 0, at = 0;  // position 0: none
  };
  struct Launch {
    std::uint64_t sequence, position;
  };
  std::optional<double> measure(Point before, Point now);

  std::uint64_t iteration_ = 0;
  std::uint64_t measured_ = 0;  // iterations
  std::uint64_t from_ = 0;      // launch from which on time counts
  double began_ = -1;           // when that had completed, microseconds; -1: not known
  bool has_times_ = false;
  Point last_, since_;
  std::deque<Launch> launches_;  // not known to have completed
};

}  // namespace deepum::core
