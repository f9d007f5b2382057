// What the kinds of commands mean to the core, which gives them, and to the mover, which carries
// them out: the direction that they go in, what they advise besides moving, or instead, and the
// event that answers one. A new kind that moves and advises is an enumerator in records.h and what
// is said of it here. Definitions only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "records.h"

namespace deepum {

constexpr deepum_direction direction_of(std::uint8_t kind) noexcept {
  switch (kind) {
    case DEEPUM_COMMAND_EVICT:
      return DEEPUM_DIRECTION_OUT;
    case DEEPUM_COMMAND_DISCARD:
      return DEEPUM_DIRECTION_DISCARD;
    case DEEPUM_COMMAND_COPY_OUT:
      return DEEPUM_DIRECTION_COPY;
    case DEEPUM_COMMAND_DROP:
      return DEEPUM_DIRECTION_DROP;
    case DEEPUM_COMMAND_COLLAPSE:
      return DEEPUM_DIRECTION_COLLAPSE;
    case DEEPUM_COMMAND_POPULATE:
      return DEEPUM_DIRECTION_POPULATE;
    default:
      return DEEPUM_DIRECTION_IN;
  }
}

// The order in which a device's directions get on: what goes out makes the room for what comes in.
inline constexpr std::array kDirectionOrder{DEEPUM_DIRECTION_DISCARD, DEEPUM_DIRECTION_DROP,
                                            DEEPUM_DIRECTION_OUT,     DEEPUM_DIRECTION_POPULATE,
                                            DEEPUM_DIRECTION_IN,      DEEPUM_DIRECTION_COPY,
                                            DEEPUM_DIRECTION_COLLAPSE};
static_assert(kDirectionOrder.size() == DEEPUM_DIRECTIONS);

// Content goes to the host, if it is not there: space is free after it, but for COPY.
constexpr bool takes_out(deepum_direction direction) noexcept {
  return direction == DEEPUM_DIRECTION_OUT || direction == DEEPUM_DIRECTION_DROP ||
         direction == DEEPUM_DIRECTION_COPY;
}

// A lane carries it out. HOLD is of a launch and not of memory.
constexpr bool carried_out(const deepum_command& command) noexcept {
  return command.kind >= DEEPUM_COMMAND_PREFETCH && command.kind <= DEEPUM_COMMAND_POPULATE &&
         command.kind != DEEPUM_COMMAND_HOLD;
}

// What became of a command, without its place in the ring.
constexpr deepum_moved_event moved_event(const deepum_command& command, deepum_moved_status status,
                                         std::uint32_t error) noexcept {
  deepum_moved_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_MOVED;
  event.header.device = command.device;
  event.command = command.id;
  event.status = status;
  event.error = error;
  return event;
}

struct Advice {
  deepum_mem_advise what;
  std::int32_t location;  // CUDA ordinal, -1 for the CPU
};

// Given in this order.
class AdviceList {
 public:
  constexpr AdviceList() noexcept = default;
  constexpr explicit AdviceList(Advice one) noexcept : advice_{one}, count_(1) {}
  constexpr AdviceList(Advice first, Advice second, Advice third) noexcept
      : advice_{first, second, third}, count_(3) {}
  constexpr const Advice* begin() const noexcept { return advice_.data(); }
  constexpr const Advice* end() const noexcept { return advice_.data() + count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }

 private:
  std::array<Advice, 3> advice_{};
  std::size_t count_ = 0;
};

// What is on both sides stays at `kept`, and the other copy goes without a transfer: "duplicates
// collapse to the preferred location".
constexpr AdviceList end_duplication(std::int32_t kept) noexcept {
  return {{DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION, kept},
          {DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY, kept},
          {DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kept}};
}

inline constexpr AdviceList kDuplicate{Advice{DEEPUM_MEM_ADVISE_SET_READ_MOSTLY, -1}};

// Given before the command moves its blocks, if it does.
constexpr AdviceList advice_before(const deepum_command& command) noexcept {
  switch (command.kind) {
    case DEEPUM_COMMAND_ADVISE:
      return AdviceList{Advice{static_cast<deepum_mem_advise>(command.advice), command.location}};
    case DEEPUM_COMMAND_COLLAPSE:
      return end_duplication(command.device);
    case DEEPUM_COMMAND_COPY_OUT:
      return kDuplicate;
    case DEEPUM_COMMAND_DROP:
      return end_duplication(-1);
    case DEEPUM_COMMAND_EVICT:
      return command.advice != 0 ? end_duplication(-1) : AdviceList{};
    default:
      return {};
  }
}

// And after.
constexpr AdviceList advice_after(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_DROP ? kDuplicate : AdviceList{};
}

constexpr bool moves(const deepum_command& command) noexcept {
  return command.kind != DEEPUM_COMMAND_ADVISE && command.kind != DEEPUM_COMMAND_COLLAPSE;
}

// Directions that launches are held for.
inline constexpr std::array kBringing{DEEPUM_DIRECTION_IN, DEEPUM_DIRECTION_POPULATE};

constexpr bool brings(int direction) noexcept {
  return direction == DEEPUM_DIRECTION_IN || direction == DEEPUM_DIRECTION_POPULATE;
}

// To the device.
constexpr bool brings(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_PREFETCH || command.kind == DEEPUM_COMMAND_POPULATE;
}

constexpr bool only_waits(const deepum_command& command) noexcept {
  return (brings(command) || command.kind == DEEPUM_COMMAND_COLLAPSE) && command.block_count == 0;
}

// Advice that follows nothing is given when its turn comes; all other at its place in the stream.
constexpr bool advises_at_once(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_ADVISE && command.after_move == 0;
}

constexpr bool advises_in_order(const deepum_command& command) noexcept {
  return !advice_before(command).empty() && !advises_at_once(command);
}

}  // namespace deepum
