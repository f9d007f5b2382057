// Commands in the order in which they are decided: numbered, merged with the one before where both
// wait for the same, and remembered for a while, since answers (MOVED events) name them by id. The
// stream does not know why a block moves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "commands.hpp"
#include "core.h"
#include "memory/um_block.hpp"

namespace deepum::core {

// What a command waits for; nothing by default.
struct After {
  EventSequence launch = 0;   // launches up to that one
  std::uint64_t streams = 0;  // on these streams, a bit each
  MoveId move = 0;            // a command of another direction
};

class CommandStream {
 public:
  CommandStream(const deepum_command_parameters& parameters, const Clock& now,
                deepum_core_statistics& statistics);

  // Moves one block, or advises it in order with moves where `advice` is given.
  void move(deepum_command_kind kind, UmBlock& block, After after, std::uint8_t advice = 0,
            std::int32_t location = 0);
  // Advice for a run of blocks that takes effect when its turn in the stream comes.
  void advise(const UmBlock& first, std::uint32_t count, deepum_mem_advise advice);
  // Every later command of that kind on the device waits for the move, which is of that direction.
  void fence(std::uint32_t device, deepum_command_kind kind, MoveId move,
             deepum_direction direction);
  void fence(std::uint32_t device, deepum_command_kind kind, MoveId move) {
    fence(device, kind, move, direction_of(move));
  }
  // The launch at hand, on that stream, starts once the prefetch or population is complete.
  // `behind_others`: what that waits for may be launches of other streams.
  void hold_launch(std::uint32_t device, std::uint32_t stream, MoveId move, bool behind_others);
  // Launches from the one at hand on wait for nothing, until another is held.
  void end_holds();

  // DEEPUM_DIRECTIONS: the command was given so long ago that it is forgotten.
  deepum_direction direction_of(MoveId move) const;
  const deepum_command* find(MoveId id) const;  // nullptr: forgotten

  std::size_t take(deepum_command* commands, std::size_t most);

 private:
  using Fences = std::array<MoveId, DEEPUM_DIRECTIONS + 1>;  // by direction of the awaited move
  deepum_command blank(deepum_command_kind kind, std::uint32_t device) const;
  deepum_command blank(deepum_command_kind kind, const UmBlock& first, std::uint32_t count) const;
  MoveId give(deepum_command command);
  MoveId give_and_remember(deepum_command command);  // a command that answers name
  bool lengthen(std::size_t index, const deepum_command& wanted, deepum_direction awaited);

  const deepum_command_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  MoveId last_id_ = 0;
  std::vector<deepum_command> commands_;
  std::size_t taken_ = 0;
  // Indices in commands_, from 1, of the commands that may be lengthened; 0: none.
  std::array<std::size_t, DEEPUM_DIRECTIONS> last_of_direction_{};
  std::size_t last_advice_ = 0;
  std::vector<deepum_command> given_;  // a ring, by id
  // By device and by direction of the waiting commands.
  std::array<std::array<Fences, DEEPUM_DIRECTIONS>, DEEPUM_MAX_DEVICES> fences_{};
};

}  // namespace deepum::core
