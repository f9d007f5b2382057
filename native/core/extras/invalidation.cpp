#include "extras/invalidation.hpp"

#include <algorithm>

namespace deepum::core {

// What the host holds of a dead block would be copied when its place is used again.
void Invalidation::content_died(UmBlock& block, bool) {
  block.order.pinned &= block.residency.resident;
  if (block.residency.resident) {
    devices_.of(block).order->content_died(block, drops_dead());
  } else if (block.content.populated && discardable(block)) {
    departures_.discard(block);
    note_discard(block);
  }
}

void Invalidation::content_begins(UmBlock& block) {
  if (block.residency.resident && block.order.place == BlockPlace::kDead) {
    devices_.of(block).order->will_be_used(block);
  }
}

std::optional<Exit> Invalidation::exit(const UmBlock& block) const {
  return discardable(block) ? std::optional(Exit::kDiscard) : std::nullopt;
}

void Invalidation::after_exit(UmBlock& block, Exit exit) {
  if (exit == Exit::kDiscard) {
    note_discard(block);
  }
}

void Invalidation::note_discard(const UmBlock& block) {
  first_ = first_ == 0 ? block.moves.discard : first_;
}

// Block reports that do not add up say that other memory than what is dead is in use, too.
bool Invalidation::discardable(const UmBlock& block) const {
  return block.content.dead && drops_dead() && settings_.policy == DEEPUM_POLICY_CORRELATION &&
         !graphs_ && now_.launch >= next_attempt_ && statistics_.block_mismatches == 0 &&
         !block.key.of_program && devices_.of(block).residency.under_pressure();
}

// Dead blocks are victims like all others from now on, and are copied.
void Invalidation::refused() {
  if (refused_) {
    return;
  }
  refused_ = true;
  for (const auto& device : devices_.all()) {
    device->order->keep_dead();
  }
}

// Each failure in a row doubles the pause before the next attempt. Discards are made in order:
// where one fails behind others, those before it did not.
void Invalidation::failed(MoveId discard) {
  if (now_.launch < next_attempt_) {
    return;  // it was decided before the pause began
  }
  const bool in_a_row = pause_ != 0 && now_.launch - next_attempt_ < pause_ && discard <= first_;
  pause_ = in_a_row ? std::min<std::uint64_t>(2 * pause_,
                                              settings_.parameters.invalidation.longest_pause)
                    : settings_.parameters.invalidation.shortest_pause;
  next_attempt_ = now_.launch + pause_;
  first_ = 0;
}

}  // namespace deepum::core
