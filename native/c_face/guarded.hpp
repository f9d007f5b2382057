// What a C face calls: nothing thrown crosses it.
#pragma once

#include <exception>

namespace deepum {

// What `run` gives, or `otherwise` where it throws, as where memory runs out.
template <typename Result, typename Run>
Result guarded(Result otherwise, Run run) noexcept {
  try {
    return run();
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace deepum
