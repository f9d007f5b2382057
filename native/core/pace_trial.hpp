// Whether clean copies pay for this program on this machine: iterations take so long with them and so long without, and the better of the
// two is what goes on. What a duplicate saves in one direction of the link may cost more in the other, which only time tells.
#pragma once

#include <cstdint>
#include <deque>

namespace deepum::core {

class PaceTrial {
 public:
  bool on() const { return phase_ == Phase::kWith || phase_ == Phase::kBetterWith; }
  // What is left and copied now tells what will be: not where it is tried what comes of leaving copies out, nor soon after.
  bool representative() const { return !(phase_ == Phase::kWithout || (phase_ == Phase::kBetterWith && position_ < from_)); }
  // Times are wanted: clean copies are made or used, and the GPU's time is told.
  bool under_way() const { return !over() && told_ && (phase_ == Phase::kWithout || copied_ != copies_); }

  // A launch, the `position`-th, of an iteration of so many (0: not known); `copied`: bytes that were copied out ahead
  // or dropped so far.
  void launched(std::uint64_t position, std::uint64_t sequence, std::uint64_t iteration, std::uint64_t copied);
  // All launches of a stream up to that sequence had completed at that time of the GPU, in microseconds; 0: not known.
  void completed(std::uint64_t sequence, std::uint64_t at);
  void forget();  // launches or times were missed

 private:
  enum class Phase { kWith, kWithout, kBetterWith, kBetterWithout };
  struct Point {
    std::uint64_t position, at;
  };
  struct Launch {
    std::uint64_t sequence, position;
  };
  bool over() const { return phase_ == Phase::kBetterWith || phase_ == Phase::kBetterWithout; }
  void begin(Phase phase, std::uint64_t position, std::uint64_t settling);
  void measure(Point before, Point now);
  void end(double pace);
  void decide(Phase phase);

  Phase phase_ = Phase::kWith;
  std::uint64_t position_ = 0;
  std::uint64_t iteration_ = 0;  // launches, when it began; 0: it has not
  std::uint64_t from_ = 0;       // launch from which on time counts
  double began_ = -1;            // when that had completed, microseconds; -1: not known
  double with_ = 0;              // what a launch took, microseconds
  std::uint64_t copies_ = 0;     // bytes, when the phase began,
  std::uint64_t copied_ = 0;     // and so far
  std::uint32_t changes_ = 0;    // of the length of an iteration
  bool told_ = false;            // a time
  Point last_{0, 0};             // position 0: none
  std::deque<Launch> launches_;  // not known to have completed
};

}  // namespace deepum::core
