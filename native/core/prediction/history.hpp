// The latest launches in order, and where the same launches led up to the present before. What
// followed there is what is predicted: a program that repeats itself is predicted a whole iteration
// ahead by what it did last time, whatever its tables hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prediction/execution_table.hpp"

namespace deepum::core {

struct PastLaunch {
  std::uint64_t hash;    // of its execution
  std::uint64_t kernel;  // the same without the names of PyTorch's blocks
  ExecutionId id;
  std::uint32_t generation;  // of that ID
  // Blocks of the device with new content since the launch before it, its own included, less those
  // that died.
  std::int32_t growth;
  std::uint32_t device;
  std::uint32_t died_away = 0;  // blocks of those that died, that were not on the device

  // Blocks needed besides what was there before: the end of those elsewhere frees no space here.
  std::int32_t needs() const { return growth + static_cast<std::int32_t>(died_away); }
};

inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

// A place in the history, and how well what led up to it agrees with what led up to the present: 0
// not at all, 1 one execution, 2 kNearKernels kernels, 3 kNearExecutions executions, 4
// kFarExecutions executions.
struct Recollection {
  std::uint64_t place = kNowhere;
  std::uint32_t agreement = 0;
};

class LaunchHistory {
 public:
  explicit LaunchHistory(std::size_t most_bytes);

  void append(const PastLaunch& launch);
  // Where it was before as it is now, the latest launch included: the best agreement, the latest
  // place of several.
  Recollection recall() const { return recalled_; }
  std::uint64_t end() const {
    return end_;
  }  // places are counted from 0; the latest launch is at end() - 1
  bool holds(std::uint64_t place) const { return place < end_ && end_ - place <= launches_.size(); }
  const PastLaunch& at(std::uint64_t place) const { return launches_[place % most_]; }
  PastLaunch& latest() { return launches_[(end_ - 1) % most_]; }
  std::size_t bytes() const {
    return launches_.capacity() * sizeof(PastLaunch) + places_.capacity() * sizeof(Place);
  }

 private:
  struct Place {
    std::uint64_t context = 0;
    std::uint64_t place = kNowhere;
  };
  static constexpr std::size_t kLevels = 4;
  std::array<std::uint64_t, kLevels>
  contexts();  // that the present is in, the best agreement last; 0: not that many launches yet
  void grow();

  std::size_t most_;
  std::vector<PastLaunch> launches_;  // a ring once it is full
  std::vector<Place>
      places_;  // by context, the latest place of each; a later context may take another's entry
  std::uint64_t end_ = 0;
  std::uint64_t kernels_ = 0;  // the latest kernels, as a polynomial
  Recollection recalled_;
};

}  // namespace deepum::core
