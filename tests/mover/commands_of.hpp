// Commands as cases write them, and a mover that is given them.
#pragma once

#include <initializer_list>

#include "fake_backend.hpp"
#include "mover_rules.hpp"

struct Blocks {
  std::uint32_t first = 0, count = 1, slot = 0;
};

// What a command waits for: launches of streams up to a sequence, and a command.
struct After {
  std::uint64_t launch = 0, streams = 1, move = 0;
};

inline deepum_command command(deepum_command_kind kind, std::uint64_t id, Blocks blocks,
                              After after = {}) {
  deepum_command made{};
  made.id = id;
  made.cause = 1;
  made.after_sequence = after.launch;
  made.stream_mask = after.streams;
  made.after_move = after.move;
  made.slot = blocks.slot;
  made.generation = 1;
  made.first_block = blocks.first;
  made.block_count = blocks.count;
  made.kind = static_cast<std::uint8_t>(kind);
  return made;
}

inline deepum_command prefetch(std::uint64_t id, Blocks blocks, After after = {}) {
  return command(DEEPUM_COMMAND_PREFETCH, id, blocks, after);
}
inline deepum_command populate(std::uint64_t id, Blocks blocks, After after = {}) {
  return command(DEEPUM_COMMAND_POPULATE, id, blocks, after);
}
inline deepum_command evict(std::uint64_t id, Blocks blocks, After after = {}) {
  return command(DEEPUM_COMMAND_EVICT, id, blocks, after);
}
inline deepum_command discard(std::uint64_t id, Blocks blocks, After after = {}) {
  return command(DEEPUM_COMMAND_DISCARD, id, blocks, after);
}
inline deepum_command copy_out(std::uint64_t id, Blocks blocks, After after = {}) {
  return command(DEEPUM_COMMAND_COPY_OUT, id, blocks, after);
}
inline deepum_command advise(std::uint64_t id, Blocks blocks, After after = {}) {
  deepum_command made = command(DEEPUM_COMMAND_ADVISE, id, blocks, after);
  made.advice = DEEPUM_MEM_ADVISE_SET_READ_MOSTLY;
  return made;
}
// The launch `launch` of a stream waits for the move.
inline deepum_command hold(std::uint64_t id, std::uint64_t launch, std::uint64_t move,
                           std::uint32_t stream = 0) {
  deepum_command made =
      command(DEEPUM_COMMAND_HOLD, id, {0, 0}, {.streams = 1ull << stream, .move = move});
  made.cause = launch;
  return made;
}

// Launches from that one on wait for nothing.
inline deepum_command hold_none(std::uint64_t id, std::uint64_t launch) {
  deepum_command made = hold(id, launch, 0);
  made.stream_mask = 0;
  return made;
}

inline deepum_command caused_by(deepum_command made, std::uint64_t cause) {
  made.cause = cause;
  return made;
}
inline deepum_command advised(deepum_command made, std::uint8_t advice) {
  made.advice = advice;
  return made;
}
inline deepum_command of_device(deepum_command made, std::uint16_t device) {
  made.device = device;
  return made;
}

class Mover {
 public:
  explicit Mover(const deepum::mover::MoverOptions& options = {.devices = 1})
      : rules(backend, options) {}

  // The mover takes these commands and does a round. Returns what it did.
  Log round(std::initializer_list<deepum_command> given = {}, std::uint64_t decided = 0) {
    for (const deepum_command& each : given) {
      rules.accept(each);
    }
    rules.round(decided);
    return backend.take();
  }

  FakeBackend backend;
  deepum::mover::MoverRules rules;
};
