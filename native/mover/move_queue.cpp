#include "move_queue.hpp"

#include <algorithm>

namespace deepum::mover {

Move* MoveQueue::find(std::uint64_t id) noexcept {
  const auto found = std::lower_bound(
      moves_.begin(), moves_.end(), id,
      [](const Move& move, std::uint64_t wanted) { return move.command.id < wanted; });
  return found != moves_.end() && found->command.id == id ? &*found : nullptr;
}

}  // namespace deepum::mover
