// A plan of one iteration that was made beforehand: its launches, and what moves at each of them.
// Everything has the name that it has in the next run, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core.h"

namespace deepum::core {

struct Plan {
  std::vector<std::uint64_t> launches;     // deepum_execute_event::execution_hash, in order
  std::vector<deepum_planned_move> moves;  // in the order of launches, points and need

  bool empty() const { return launches.empty(); }
  // It says what is on both sides: whatever it does not say is on one.
  bool copies() const {
    return std::ranges::any_of(moves, [](const deepum_planned_move& move) {
      return move.kind == DEEPUM_PLAN_COPY_OUT || move.kind == DEEPUM_PLAN_DUPLICATE;
    });
  }
};

// Whether each move is of a launch of the plan, of a known kind, and not before those before it.
inline bool is_sound(std::span<const deepum_planned_move> moves, std::size_t launches) {
  const auto sound = [&](const deepum_planned_move& move) {
    return move.launch < launches && move.count > 0 && move.point <= DEEPUM_PLAN_AT_WAIT &&
           move.kind >= DEEPUM_PLAN_PREFETCH && move.kind <= DEEPUM_PLAN_DUPLICATE;
  };
  const auto later = [](const deepum_planned_move& a, const deepum_planned_move& b) {
    return a.launch != b.launch ? a.launch < b.launch : a.point < b.point;
  };
  return std::ranges::all_of(moves, sound) && std::ranges::is_sorted(moves, later);
}

}  // namespace deepum::core
