// How many blocks may be fetched ahead at a time: half of the device to begin with. Each mistake
// narrows the window: a block that was evicted for a later launch than the one that needs it again,
// or one that was fetched and is evicted unused. A launch that it holds off without one widens it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parameters.h"

namespace deepum::core {

class PrefetchWindow {
 public:
  explicit PrefetchWindow(const deepum_window_parameters& parameters) : parameters_(parameters) {}

  void begin(std::uint64_t capacity) { withheld_ = capacity / parameters_.initial_share; }
  // False: that many blocks were fetched ahead already.
  bool admits(std::uint64_t ahead, std::uint64_t capacity) {
    const bool open =
        ahead < capacity - std::min(withheld_, capacity - capacity / parameters_.least_share);
    full_ = full_ || !open;
    return open;
  }
  void note_mistake(std::uint64_t ahead, std::uint64_t capacity) {
    ++mistakes_;
    withheld_ = std::max(withheld_, capacity - std::min(capacity, ahead)) + parameters_.narrowing;
  }
  void launch_passed() {
    withheld_ -= std::min<std::uint64_t>(withheld_, full_ ? 1 : 0);
    full_ = false;
  }
  std::uint64_t mistakes() const { return mistakes_; }

 private:
  const deepum_window_parameters& parameters_;
  std::uint64_t withheld_ = 0;  // blocks
  std::uint64_t mistakes_ = 0;
  bool full_ = false;  // it held a launch off since the latest one
};

}  // namespace deepum::core
