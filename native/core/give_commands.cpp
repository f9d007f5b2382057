// Commands as they are given: numbered, lengthened where nothing waits for more by that, and kept for what is answered about them.
#include <algorithm>

#include "commands.hpp"
#include "engine.hpp"

namespace deepum::core {
namespace {

// Where a block keeps the last command of that kind; advice goes in with the prefetches.
std::uint64_t& last_move(UmBlock& block, deepum_command_kind kind) {
  switch (kind) {
    case DEEPUM_COMMAND_DISCARD:
      return block.discarded;
    case DEEPUM_COMMAND_EVICT:
    case DEEPUM_COMMAND_COPY_OUT:
    case DEEPUM_COMMAND_DROP:
      return block.moved_out;
    default:
      return block.moved_in;
  }
}

void count_bytes(deepum_core_statistics& statistics, deepum_command_kind kind) {
  statistics.bytes_prefetched += kind == DEEPUM_COMMAND_PREFETCH || kind == DEEPUM_COMMAND_POPULATE ? kBlockBytes : 0;
  statistics.bytes_evicted += kind == DEEPUM_COMMAND_EVICT ? kBlockBytes : 0;
  statistics.bytes_invalidated += kind == DEEPUM_COMMAND_DISCARD ? kBlockBytes : 0;
  statistics.bytes_copied_out += kind == DEEPUM_COMMAND_COPY_OUT ? kBlockBytes : 0;
  statistics.bytes_dropped += kind == DEEPUM_COMMAND_DROP ? kBlockBytes : 0;
}

}  // namespace

deepum_direction Engine::direction_of(std::uint64_t move) const {
  const deepum_command& given = given_[move % kRemembered];
  return move != 0 && given.id == move ? deepum::direction_of(given.kind) : DEEPUM_DIRECTIONS;
}

// Prefetches go in order, and so do populations and collapses: one that waits makes all that follow wait. So does one of no blocks, where
// one has to wait for two moves of different directions, of which none is behind the other.
void Engine::await_move(DeviceMemory& device, std::uint32_t ordinal, deepum_command_kind kind, std::uint64_t move,
                        deepum_direction direction) {
  std::uint64_t& awaited = device.awaited_by(kind)[direction];
  if (move <= awaited) {
    return;
  }
  awaited = move;
  deepum_command made{};
  made.id = ++last_id_;
  made.cause = sequence_;
  made.after_move = move;
  made.kind = static_cast<std::uint8_t>(kind);
  made.device = static_cast<std::uint16_t>(ordinal);
  commands_.push_back(made);
  last_of_direction_[deepum::direction_of(made.kind)] = 0;  // what follows is behind it
}

// Gives a command for one block, or lengthens the last one of its kind if that changes nothing in what either waits for.
void Engine::command(deepum_command_kind kind, std::uint32_t ordinal, UmBlock& block, std::uint64_t after_sequence, std::uint64_t streams,
                     std::uint64_t after_move, std::int32_t location, std::uint8_t advice) {
  if (after_sequence == 0) {
    streams = 0;
  }
  std::uint64_t& moved = last_move(block, kind);
  if (&moved == &block.moved_out) {
    block.stayed = kind == DEEPUM_COMMAND_COPY_OUT;
  } else if (kind == DEEPUM_COMMAND_PREFETCH || kind == DEEPUM_COMMAND_POPULATE) {
    block.populates = kind == DEEPUM_COMMAND_POPULATE;
  }
  count_bytes(statistics_, kind);
  // Only commands of the same event are lengthened, so that what is decided does not depend on how events come in batches; and only
  // if it waits for nothing later than itself, or two commands would wait for each other, and for moves of one direction. Advice is
  // lengthened across the prefetches behind it, which it may go before; a prefetch goes behind the advice on its block.
  std::size_t& place =
      kind == DEEPUM_COMMAND_ADVISE ? last_advice_ : last_of_direction_[deepum::direction_of(static_cast<std::uint8_t>(kind))];
  const deepum_direction awaited = direction_of(after_move);
  if (kind == DEEPUM_COMMAND_PREFETCH || kind == DEEPUM_COMMAND_POPULATE) {
    std::uint64_t& latest = devices_[ordinal].awaited_by(kind)[awaited];
    latest = std::max(latest, after_move);
  }
  if (place > taken_) {
    deepum_command& last = commands_[place - 1];
    if (last.kind == kind && last.cause == sequence_ && last.device == ordinal && last.slot == block.slot &&
        last.first_block + last.block_count == block.index && last.block_count < kMostCommandBlocks &&
        last.after_sequence == after_sequence && last.stream_mask == streams && last.location == location && last.advice == advice &&
        after_move < last.id && (after_move == 0 || last.after_move == 0 || awaited == direction_of(last.after_move))) {
      ++last.block_count;
      last.after_move = std::max(last.after_move, after_move);
      given_[last.id % kRemembered].block_count = last.block_count;
      moved = last.id;
      return;
    }
  }
  deepum_command made{};
  made.id = ++last_id_;
  made.cause = sequence_;
  made.after_sequence = after_sequence;
  made.stream_mask = streams;
  made.after_move = after_move;
  made.slot = block.slot;
  made.generation = slots_[block.slot].generation;
  made.first_block = block.index;
  made.block_count = 1;
  made.kind = static_cast<std::uint8_t>(kind);
  made.advice = advice;
  made.device = static_cast<std::uint16_t>(ordinal);
  made.location = location;
  commands_.push_back(made);
  place = commands_.size();
  if (kind == DEEPUM_COMMAND_ADVISE) {
    last_of_direction_[DEEPUM_DIRECTION_IN] = 0;
  }
  given_[made.id % kRemembered] = made;
  moved = made.id;
  ++statistics_.commands;
}

}  // namespace deepum::core
