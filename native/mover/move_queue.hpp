// Commands that wait for their turn, and what became of those before them. Logic only: no driver,
// no threads.
#pragma once

#include <cstdint>
#include <deque>

#include "commands.hpp"
#include "records.h"

namespace deepum::mover {

// Behind at most so much there is an event, so that what waits for one move does not wait for many
// that were given since.
constexpr std::uint64_t kEventBytes = 32ull << 20;

struct Move {
  deepum_command command;
  bool awaited = false;  // a command of another direction waits for this one: an event follows it
};

// The commands of one direction of one device, in the order of their ids.
class MoveQueue {
 public:
  void push(const deepum_command& command) { moves_.push_back({command, false}); }
  void pop() noexcept { moves_.pop_front(); }
  bool empty() const noexcept { return moves_.empty(); }
  std::size_t size() const noexcept { return moves_.size(); }
  const Move& operator[](std::size_t i) const noexcept { return moves_[i]; }
  Move* find(std::uint64_t id) noexcept;  // nullptr: not waiting here
  void clear() noexcept { moves_.clear(); }

 private:
  std::deque<Move> moves_;
};

// Where the last commands went, by id: as many as may be decided before one that waits on the host.
class SettledMoves {
 public:
  static constexpr std::uint32_t kKept = 1u << 16;
  static constexpr int kNowhere = -1;  // skipped: nothing to wait for
  static constexpr int kLongAgo = -2;  // not known any more

  void settle(std::uint64_t id, int lane) noexcept { kept_[id % kKept] = {id, lane}; }
  int lane(std::uint64_t id) const noexcept {
    return kept_[id % kKept].id == id ? kept_[id % kKept].lane : kLongAgo;
  }

 private:
  struct Entry {
    std::uint64_t id = 0;
    int lane = kNowhere;
  };
  Entry kept_[kKept];
};

}  // namespace deepum::mover
