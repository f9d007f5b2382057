// Whether the program repeats itself, after how many launches, and where in its iteration it is:
// from the launches alone (pattern detection at run time of Lee's thesis, SNU; renumbered tensors
// are the core's names).
//
// A pattern is taken when all launches of a whole period equal those of the period before, or all
// but a few of two periods do, and most of them touch memory of the same names. It is held through
// a few odd launches (HeldPattern), dropped when the program does something else, and recognised
// when it comes back. Which moves the core decides on does not depend on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "iteration/held_pattern.hpp"
#include "iteration/recent_launches.hpp"
#include "iteration/repeat_finder.hpp"

namespace deepum::core {

class IterationDetector {
 public:
  IterationDetector() = default;
  IterationDetector(const IterationDetector&) = delete;
  IterationDetector& operator=(const IterationDetector&) = delete;

  // A launch came: the hash of its kernel and arguments, and that with the names of the memory that
  // it touches mixed in.
  void launched(std::uint64_t hash, std::uint64_t named) {
    launches_.append({hash, named});
    if (!held_) {
      search(hash);
      return;
    }
    finder_.note();
    if (!held_->launched(hash)) [[unlikely]] {
      drop();
    }
  }
  // The program waits for the GPU. An iteration begins behind a wait, if there is one in it.
  void waited() {
    if (waited_at_ != launches_.count()) {
      waited_before_ = std::exchange(waited_at_, launches_.count());
    }
  }
  // The launches from now on have nothing to do with those before. Counts stand.
  void forget();

  // Launches of the iteration; nothing: none is known.
  std::optional<std::uint32_t> period() const {
    return held_ ? std::optional(static_cast<std::uint32_t>(held_->period())) : std::nullopt;
  }
  // Of the latest launch in the iteration, from 0. Where it is odd, of the one that was expected.
  std::uint32_t position() const {
    return held_ ? static_cast<std::uint32_t>(held_->position()) : 0;
  }
  // The latest launch is the first of an iteration.
  bool begins() const { return held_ && held_->begins(); }
  // The latest launch is the one that the iteration has there.
  bool as_expected() const { return held_ && held_->as_expected(); }
  // Whole ones so far, those included by which the first pattern was found, and never fewer than
  // before. All that was found before one that is longer than all of it was a part of something:
  // loading a model, one of its layers.
  std::uint64_t iterations() const {
    return std::max(least_, counted_ + (held_ ? held_->ended() : 0));
  }

 private:
  // Launches over which a repetition goes on at least: where the program waits in each, where it
  // has not waited for long, and where it may be one of layers.
  static constexpr std::uint64_t kLeastWithWaits = 32;
  static constexpr std::uint64_t kLeastWithoutWaits = 256;
  static constexpr std::uint64_t kLeastOfLayers = 1024;
  // It may be, and has to come so many times, where it has fewer launches than that and the program
  // does not wait in each; and where the program waits elsewhere.
  static constexpr std::uint64_t kLongestLayer = 128;
  static constexpr std::uint64_t kMostLayers = 64;
  // So many periods that are not short, with a wait in each, are iterations.
  static constexpr std::uint64_t kCertain = 3;
  static constexpr std::size_t kMostDropped = 2;  // training and evaluation

  // A pattern that may come back. Where the program waits in it, it is an iteration for certain.
  struct Dropped {
    std::vector<std::uint64_t> launches;
    bool waits = false;
    std::uint64_t context = 0;  // of its first launches
    std::size_t matched = 0;    // from its first launch on, up to the latest launch
  };

  void search(std::uint64_t hash);
  bool recognise(std::uint64_t hash);
  bool waited_in(std::uint64_t period) const;
  bool repeats() const;
  bool is_certain(std::uint64_t period) const;
  bool is_of_known(std::uint64_t period) const;
  std::uint64_t least_run(std::uint64_t period) const;
  void count(std::uint64_t iterations, std::uint64_t period);
  void take();
  void drop();

  RecentLaunches launches_;
  RepeatFinder finder_{launches_};
  std::optional<HeldPattern> held_;
  std::vector<Dropped> dropped_;  // the one dropped last is the last
  std::uint64_t counted_ = 0;     // iterations of patterns held before, and by which this was found
  std::uint64_t counted_launches_ = 0;  // in these
  std::uint64_t least_ = 0;             // iterations that were counted, and were none
  std::uint64_t counted_until_ = 0;     // count of launches at the end of the last one of those
  std::uint64_t dropped_at_ = 0;        // count of launches then
  std::uint64_t waited_at_ = 0;         // count of launches then; 0: never
  std::uint64_t waited_before_ = 0;
};

}  // namespace deepum::core
