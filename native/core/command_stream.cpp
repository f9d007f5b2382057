#include "command_stream.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

constexpr std::size_t kRemembered = 4096;  // commands

// Where a block keeps the latest command of that kind; advice counts as a move in.
MoveId& latest_move(UmBlock& block, deepum_command_kind kind) {
  const deepum_direction direction = direction_of(static_cast<std::uint8_t>(kind));
  return direction == DEEPUM_DIRECTION_DISCARD ? block.moves.discard
         : takes_out(direction)                ? block.moves.out
                                               : block.moves.in;
}

void count_bytes(deepum_core_statistics& statistics, deepum_command_kind kind) {
  statistics.bytes_prefetched +=
      kind == DEEPUM_COMMAND_PREFETCH || kind == DEEPUM_COMMAND_POPULATE ? kBlockBytes : 0;
  statistics.bytes_evicted += kind == DEEPUM_COMMAND_EVICT ? kBlockBytes : 0;
  statistics.bytes_invalidated += kind == DEEPUM_COMMAND_DISCARD ? kBlockBytes : 0;
  statistics.bytes_copied_out += kind == DEEPUM_COMMAND_COPY_OUT ? kBlockBytes : 0;
  statistics.bytes_dropped += kind == DEEPUM_COMMAND_DROP ? kBlockBytes : 0;
}

}  // namespace

CommandStream::CommandStream(const deepum_command_parameters& parameters, const Clock& now,
                             deepum_core_statistics& statistics)
    : parameters_(parameters), now_(now), statistics_(statistics), given_(kRemembered) {}

const deepum_command* CommandStream::find(MoveId id) const {
  const deepum_command& given = given_[id % kRemembered];
  return id != 0 && given.id == id ? &given : nullptr;
}

deepum_direction CommandStream::direction_of(MoveId move) const {
  const deepum_command* const given = find(move);
  return given != nullptr ? deepum::direction_of(given->kind) : DEEPUM_DIRECTIONS;
}

deepum_command CommandStream::blank(deepum_command_kind kind, std::uint32_t device) const {
  deepum_command made{};
  made.cause = now_.event;
  made.kind = static_cast<std::uint8_t>(kind);
  made.device = static_cast<std::uint16_t>(device);
  return made;
}

deepum_command CommandStream::blank(deepum_command_kind kind, const UmBlock& first,
                                    std::uint32_t count) const {
  deepum_command made = blank(kind, first.key.device);
  made.slot = first.key.slot;
  made.generation = first.key.generation;
  made.first_block = first.key.index;
  made.block_count = count;
  return made;
}

MoveId CommandStream::give(deepum_command command) {
  command.id = ++last_id_;
  commands_.push_back(command);
  return command.id;
}

MoveId CommandStream::give_and_remember(deepum_command command) {
  command.id = give(command);
  given_[command.id % kRemembered] = command;
  ++statistics_.commands;
  return command.id;
}

// Prefetches go in order, and so do populations and collapses: one that waits makes all that follow
// wait. A command of no blocks does so, too, where one has to wait for two moves of different
// directions, of which none is behind the other.
void CommandStream::fence(std::uint32_t device, deepum_command_kind kind, MoveId move,
                          deepum_direction direction) {
  MoveId& awaited =
      fences_[device][deepum::direction_of(static_cast<std::uint8_t>(kind))][direction];
  if (move <= awaited) {
    return;
  }
  awaited = move;
  deepum_command made = blank(kind, device);
  made.after_move = move;
  give(made);
  // What follows is behind it.
  last_of_direction_[deepum::direction_of(static_cast<std::uint8_t>(kind))] = 0;
}

void CommandStream::hold_launch(std::uint32_t device, std::uint32_t stream, MoveId move,
                                bool behind_others) {
  deepum_command made = blank(DEEPUM_COMMAND_HOLD, device);
  made.stream_mask = 1ull << stream;
  made.after_move = move;
  made.advice = behind_others ? DEEPUM_HOLD_BEHIND_OTHERS : 0;
  give(made);
  ++statistics_.holds;
}

void CommandStream::end_holds() { give(blank(DEEPUM_COMMAND_HOLD, 0)); }

// Only commands of the same event are lengthened, so that what is decided does not depend on how
// events come in batches; and only if the command waits for nothing later than itself, or two
// commands would wait for each other, and for moves of one direction.
bool CommandStream::lengthen(std::size_t index, const deepum_command& wanted,
                             deepum_direction awaited) {
  if (index <= taken_) {
    return false;
  }
  deepum_command& last = commands_[index - 1];
  const bool extends =
      last.kind == wanted.kind && last.cause == wanted.cause && last.device == wanted.device &&
      last.slot == wanted.slot && last.first_block + last.block_count == wanted.first_block &&
      last.block_count < parameters_.most_blocks && last.after_sequence == wanted.after_sequence &&
      last.stream_mask == wanted.stream_mask && last.location == wanted.location &&
      last.advice == wanted.advice;
  if (!extends || wanted.after_move >= last.id ||
      (wanted.after_move != 0 && last.after_move != 0 &&
       awaited != direction_of(last.after_move))) {
    return false;
  }
  ++last.block_count;
  last.after_move = std::max(last.after_move, wanted.after_move);
  given_[last.id % kRemembered].block_count = last.block_count;
  return true;
}

void CommandStream::move(deepum_command_kind kind, UmBlock& block, After after, std::uint8_t advice,
                         std::int32_t location) {
  const deepum_direction awaited = direction_of(after.move);
  MoveId& moved = latest_move(block, kind);
  if (&moved == &block.moves.out) {
    block.moves.out_keeps = kind == DEEPUM_COMMAND_COPY_OUT;
  } else if (brings(deepum::direction_of(kind)) && kind != DEEPUM_COMMAND_ADVISE) {
    block.moves.in_by = static_cast<std::uint8_t>(kind);
    MoveId& fenced =
        fences_[block.key.device][deepum::direction_of(static_cast<std::uint8_t>(kind))][awaited];
    fenced = std::max(fenced, after.move);
  }
  count_bytes(statistics_, kind);
  deepum_command made = blank(kind, block, 1);
  made.after_sequence = after.launch;
  made.stream_mask = after.launch != 0 ? after.streams : 0;
  made.after_move = after.move;
  made.advice = advice;
  made.location = location;
  // Advice is lengthened across the prefetches behind it, which it may go before; a prefetch goes
  // behind the advice on its block.
  std::size_t& last = kind == DEEPUM_COMMAND_ADVISE
                          ? last_advice_
                          : last_of_direction_[deepum::direction_of(made.kind)];
  if (lengthen(last, made, awaited)) {
    moved = commands_[last - 1].id;
    return;
  }
  moved = give_and_remember(made);
  last = commands_.size();
  if (kind == DEEPUM_COMMAND_ADVISE) {
    last_of_direction_[DEEPUM_DIRECTION_IN] = 0;
  }
}

void CommandStream::advise(const UmBlock& first, std::uint32_t count, deepum_mem_advise advice) {
  const bool of_device =
      advice == DEEPUM_MEM_ADVISE_SET_ACCESSED_BY || advice == DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY;
  deepum_command made = blank(DEEPUM_COMMAND_ADVISE, first, count);
  made.advice = static_cast<std::uint8_t>(advice);
  made.location = of_device ? static_cast<std::int32_t>(first.key.device) : -1;
  give_and_remember(made);
  // Prefetches that are decided from now on come behind it.
  last_of_direction_[DEEPUM_DIRECTION_IN] = 0;
  last_advice_ = 0;
}

std::size_t CommandStream::take(deepum_command* commands, std::size_t most) {
  const std::size_t count = std::min(most, commands_.size() - taken_);
  std::copy_n(commands_.begin() + static_cast<std::ptrdiff_t>(taken_), count, commands);
  taken_ += count;
  if (taken_ == commands_.size()) {
    commands_.clear();
    taken_ = 0;
    last_of_direction_ = {};
    last_advice_ = 0;
  }
  return count;
}

}  // namespace deepum::core
