// How many blocks a device holds.
#include <algorithm>
#include <iterator>

#include "memory/residency.hpp"

namespace deepum::core {
namespace {

constexpr std::size_t kKeptFillPoints = 1u
                                        << 14;  // launches: more than a queue of the driver's holds

}  // namespace

void ResidencyBelief::report_capacity(const deepum_device_event& event) {
  if (event.header.kind == DEEPUM_EVENT_DEVICE) {
    withdrawn_ = 0;
  }
  total_ = event.total_bytes / kBlockBytes;
  reported_ = std::min(event.capacity_bytes, event.total_bytes) / kBlockBytes;
  limit_capacity();
  known_ = true;
}

void ResidencyBelief::set_budget(std::uint64_t blocks) {
  budget_ = blocks;
  withdrawn_ = 0;
  limit_capacity();
}

void ResidencyBelief::limit_capacity() {
  initial_ = budget_ == kNoBudget ? reported_ : std::min(budget_, total_);
  set_capacity(initial_ - std::min(initial_, withdrawn_));
}

void ResidencyBelief::set_capacity(std::uint64_t blocks) {
  capacity_ = blocks;
  if (used_ > capacity_) {
    doubt_all_once();
  }
}

void ResidencyBelief::withdraw_to(std::uint64_t capacity) {
  withdrawn_ = initial_ - std::min(initial_, capacity);
  set_capacity(initial_ - withdrawn_);
}

bool ResidencyBelief::note_fill_point(bool learning) {
  if (!filling_ || settings_.policy != DEEPUM_POLICY_CORRELATION) {
    return false;
  }
  if (fill_points_.empty() || fill_points_.back().arrived != migrations_) {
    fill_points_.push_back({now_.event, migrations_, commanded_});
  }
  if (fill_points_.size() > kKeptFillPoints) {
    fill_points_.pop_front();
  }
  // What launches that were seen before need besides, modules and libraries, is there.
  return known_ && learning && allocated_ * parameters_.worth_reading >= capacity_;
}

void ResidencyBelief::end_filling() {
  filling_ = false;
  fill_points_.clear();
}

// The blocks that are there by now lie between those of the launches that are surely done and those
// of the launches that may have begun, and what moves brought or may have. With what is free that
// is how much there can be at least and at most.
void ResidencyBelief::read_free_memory(const deepum_free_memory_event& event) {
  if (!known_ || !filling_) {
    return;
  }
  const auto behind = [&](EventSequence sequence) {
    const auto next = std::ranges::upper_bound(fill_points_, sequence, {}, &FillPoint::sequence);
    return next == fill_points_.begin() ? FillPoint{} : *std::prev(next);
  };
  const FillPoint done = behind(event.completed), begun = behind(event.begun);
  const std::uint64_t departures = migrations_ - used_;  // with their allocations
  const auto capacity_for = [&](std::uint64_t arrived) {
    const std::uint64_t there =
        arrived - std::min(arrived, departures) + event.free_bytes / kBlockBytes;
    return there - std::min(there, event.reserve_bytes / kBlockBytes);
  };
  const std::uint64_t least = capacity_for(done.arrived);
  const std::uint64_t most = capacity_for(begun.arrived + commanded_ - begun.commanded);
  if (capacity_ > most + parameters_.reading_tolerance) {
    withdraw_to(most);
  } else if (capacity_ + parameters_.reading_tolerance < least && withdrawn_ != 0) {
    withdraw_to(least);  // another program gave memory back
  }
}

bool ResidencyBelief::was_taken(const UmBlock& block, EventSequence reported) const {
  return under_pressure() && !block.key.of_program && block.residency.resident &&
         block.moves.in > block.moves.out && !block.host_copy.read_mostly &&
         !block.on_host.stays() && !block.on_host.mapped && block.moves.first_use != 0 &&
         block.moves.first_use <= reported;
}

// Each block that the driver took shows that one more than there is room for was asked for. One
// that is missing makes the driver take another when it comes back, so there may be more of them
// than the belief is too high by: an iteration's count up to a limit, and the next shows whether
// that was enough.
void ResidencyBelief::note_taken(std::uint64_t blocks) {
  statistics_.driver_evictions_seen += blocks;
  if (now_.launch - loss_window_start_ >
          std::max<std::uint64_t>(now_.iteration, parameters_.least_loss_window) ||
      loss_window_start_ == 0) {
    loss_window_start_ = now_.launch;
    loss_window_blocks_ = 0;
  }
  const std::uint64_t most = initial_ / parameters_.loss_share -
                             std::min(initial_ / parameters_.loss_share, loss_window_blocks_);
  const std::uint64_t least = initial_ / parameters_.least_share;
  const std::uint64_t off = std::min({blocks, most, capacity_ - std::min(capacity_, least)});
  loss_window_blocks_ += off;
  withdraw_to(capacity_ - off);
}

}  // namespace deepum::core
