#include "memory/residency.hpp"

namespace deepum::core {
void ResidencyBelief::allocate(std::uint64_t blocks) {
  allocated_ += blocks;
  most_allocated_ = std::max(most_allocated_, allocated_);
}

void ResidencyBelief::arrive(UmBlock& block) {
  block.residency.resident = true;
  block.residency.migrated = ++migrations_;
}

void ResidencyBelief::depart(UmBlock& block) {
  clean_ -= block.residency.clean ? 1 : 0;
  block.residency.clean = false;
  block.residency.resident = false;
  --used_;
}

void ResidencyBelief::mark_clean(UmBlock& block) {
  clean_ += block.residency.clean ? 0 : 1;
  block.residency.clean = true;
}

void ResidencyBelief::mark_dirty(UmBlock& block) {
  clean_ -= block.residency.clean ? 1 : 0;
  block.residency.clean = false;
}

void ResidencyBelief::count_arrival(bool by_command, bool fetched) {
  commanded_ += by_command ? 1 : 0;
  fetches_ += by_command && fetched ? 1 : 0;
}

// The oldest eviction whose space is not taken waits for an earlier launch than the oldest such
// discard.
bool ResidencyBelief::eviction_frees_first() const {
  return !evicted_.empty() &&
         (discarded_.empty() || evicted_.front().after < discarded_.front().after);
}

// Where the capacity fell, or a discard was undone, moves have freed more than there is: the space
// that was free first is the one that is not there, or what arrives would wait for moves that are
// long done, and find no room.
void ResidencyBelief::forget_lost_space() {
  while (evicted_.size() + discarded_.size() > free()) {
    (discarded_.empty() || eviction_frees_first() ? evicted_ : discarded_).pop_front();
  }
}

// Space that was never used, or was freed with its allocation, goes first, then what discards free.
// `earliest_first`: what is fetched takes the space that is free first, so that it does not hold up
// what comes behind it, while what is only populated has the time to wait for what died last.
Space ResidencyBelief::take_space(bool earliest_first) {
  forget_lost_space();
  ++used_;
  const std::uint64_t unclaimed = capacity_ >= used_ ? capacity_ - used_ : 0;
  if (unclaimed >= evicted_.size() + discarded_.size()) {
    return {};
  }
  std::deque<Space>& from =
      discarded_.empty() || (earliest_first && eviction_frees_first()) ? evicted_ : discarded_;
  const Space space = from.front();
  from.pop_front();
  return space;
}

void ResidencyBelief::reclaim_space(MoveId undone_discard) {
  ++used_;
  const auto space = std::ranges::find(discarded_, undone_discard, &Space::move);
  if (undone_discard != 0 && space != discarded_.end()) {
    discarded_.erase(space);
  }
}

void ResidencyBelief::confirm(UmBlock& block) const {
  block.residency.confirmed = now_.launch;
  block.residency.fetches_at_confirmation = fetches_;
}

void ResidencyBelief::shake(UmBlock& block) const {
  block.residency.confirmed = 0;
  block.residency.fetches_at_confirmation = fetches_;
}

// What is there already is asked for seldom: in a decoding loop almost all of memory stays where it
// is, and thousands of commands that move nothing take time as well. So a block is doubted no
// sooner than `doubt_share` times as much as is on the device was fetched since it was known to be
// there; but at once beside a fault, and never where it is as good on the host. While a program is
// learned its launches fault and the driver makes room as it likes: so `free_doubts` times as much
// as is on the device is asked for again, each block an iteration after it was confirmed. `freely`:
// each block is asked for as soon as it may be.
bool ResidencyBelief::doubts(const UmBlock& block, std::uint64_t after_launches, bool freely) {
  if (block.on_host.stays() || now_.launch <= block.residency.confirmed + after_launches) {
    return false;
  }
  if (freely || block.residency.confirmed == 0 ||
      fetches_ - block.residency.fetches_at_confirmation >= parameters_.doubt_share * used_) {
    return true;
  }
  if (freely_doubted_ >= parameters_.free_doubts * used_) {
    return false;
  }
  ++freely_doubted_;
  return true;
}

}  // namespace deepum::core
