// A launch that happened, and one that is predicted to come.
#pragma once

#include <cstdint>

#include "prediction/execution_table.hpp"

namespace deepum::core {

struct Launch {
  ExecutionId id;
  std::uint32_t generation;  // of that ID
  std::uint64_t hash;        // with the names of PyTorch's blocks
  std::uint64_t kernel;      // without
  std::uint32_t device;
  std::uint64_t period;  // launches since the same execution before; 0: there was none
  bool is_new;           // it is the first one of its execution
  bool sparse;           // it touches some rows of tables
};

inline constexpr std::uint64_t kNoCookie = ~std::uint64_t{0};

struct PredictedLaunch {
  ExecutionId id;
  std::uint32_t generation;
  std::uint64_t kernel;
  std::uint64_t cookie = kNoCookie;  // the predictor's own: a place in the history, say
};

}  // namespace deepum::core
