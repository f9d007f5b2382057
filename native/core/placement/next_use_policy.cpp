#include "placement/next_use_policy.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

constexpr std::size_t kFarthest = 1u << 16;  // launches: next uses are told apart up to there,
constexpr unsigned kFarthestShift = 3;       // by eights (a power of two)
constexpr std::uint64_t kLastShare = 128;    // part of a device, of which any block may leave first

}  // namespace

NextUsePolicy::NextUsePolicy(std::uint64_t launch_queue, const deepum_order_parameters& parameters,
                             View view)
    : ListedPolicy(false, true, parameters, view), launch_queue_(launch_queue) {
  expected_.span(kFarthest, kFarthestShift);
  expected_clean_.span(kFarthest, kFarthestShift);
}

void NextUsePolicy::cool_down(UmBlock& block) {
  note_use(block);
  put(block, BlockPlace::kCoolingDown, now().launch);
}

void NextUsePolicy::apply_use(UmBlock& block) {
  const LaunchIndex launch = now().launch;
  const LaunchIndex foreseen = is_expected(block) && block.order.launch > launch
                                   ? block.order.launch
                                   : block.order.afterwards;
  cool_down(block);
  block.order.afterwards = foreseen > launch ? foreseen : 0;
}

void NextUsePolicy::apply_expectation(UmBlock& block, LaunchIndex by) {
  if (block.order.place == BlockPlace::kCoolingDown) {
    block.order.afterwards =
        block.order.afterwards <= now().launch ? by : std::min(block.order.afterwards, by);
  } else {
    ListedPolicy::apply_expectation(block, by);
  }
}

void NextUsePolicy::apply_distant_expectation(UmBlock& block, LaunchIndex by) {
  if (!is_evictable(block) || !missed(block)) {
    NextUsePolicy::apply_expectation(block, by);
  }
}

void NextUsePolicy::clean_changed(UmBlock& block) {
  const BlockPlace place = is_evictable(block) ? BlockPlace::kEvictable : BlockPlace::kExpected;
  if ((is_evictable(block) || is_expected(block)) && refined(block, place) != block.order.place) {
    move(block, place);
  }
}

bool NextUsePolicy::cooled_down(const UmBlock& block) const {
  const std::uint64_t share = residency().capacity() / parameters_.blocks_share;
  const std::uint64_t least_launches = std::min<std::uint64_t>(
      parameters_.least_launches, now().iteration / parameters_.blocks_share);
  const std::uint64_t least_blocks = std::min<std::uint64_t>(parameters_.least_blocks, share);
  const std::uint64_t launches = now().launch - block.order.launch;
  const std::uint64_t brought = residency().migrations() - block.order.migrations_at_use;
  return launches > launch_queue_ ||  // it has run
         (launches >= least_launches && brought >= least_blocks &&
          (launches >= parameters_.many_launches || brought >= share));
}

void NextUsePolicy::settle() {
  for (UmBlock* block = cooling_down_.head(); block != nullptr && cooled_down(*block);
       block = cooling_down_.head()) {
    wake(*block);
  }
}

// Its next use is the one that the chain predicts, where that may be believed, or the one that was
// learned. While most next uses are unknown (at first, or where nothing repeats) those that were
// learned say little.
void NextUsePolicy::wake(UmBlock& block) {
  const LaunchIndex launch = now().launch;
  const LaunchIndex predicted =
      block.order.afterwards > launch && !missed(block) ? block.order.afterwards : 0;
  LaunchIndex learned = block.uses.next > launch ? block.uses.next : 0;
  if (learned != 0 && block.uses.next_use == Use::kDies) {
    learned = block.uses.last + parameters_.dying * (learned - block.uses.last);
  }
  ++woken_;
  foreseen_ += predicted != 0 || learned != 0 ? 1 : 0;
  if (woken_ >= 2 * residency().capacity()) {
    woken_ /= 2;
    foreseen_ /= 2;
  }
  learned = foreseen_ * 2 >= woken_ ? learned : 0;
  const LaunchIndex next =
      predicted == 0 || learned == 0 ? predicted + learned : std::min(predicted, learned);
  const LaunchIndex last = std::max(predicted, learned);
  block.order.afterwards = last > next ? last : 0;
  put(block, next != 0 ? BlockPlace::kExpected : BlockPlace::kEvictable,
      next != 0 ? next : block.order.launch);
}

// Evictions go in order: one that waits for a launch which the GPU may not have come to, and which
// none before it waits for, holds up those behind it. So of what is needed about as late the first
// that holds up nothing leaves, or what was used longest ago.
UmBlock* NextUsePolicy::earliest_of_last(UmBlock& victim, const VictimQuery& query) {
  UmBlock* found = &victim;
  const auto holds_up_nothing = [&](UmBlock& block) {
    if (block.uses.last < found->uses.last && leaves_for(block, query)) {
      found = &block;
    }
    return found->uses.last <= evicted_until_;
  };
  expected_.find_beyond(beyond(query), residency().capacity() / kLastShare, holds_up_nothing);
  return found;
}

Victim NextUsePolicy::choose(const VictimQuery& query) {
  const Victim victim = find(query);
  if (victim.block != nullptr && !victim.block->residency.clean) {
    evicted_until_ = std::max(evicted_until_, victim.block->uses.last);
  }
  return victim;
}

// What is needed last leaves, and what leaves without a copy before all else, if it has the time to
// come back. The first of those whose next use is unknown goes instead if it was used longer ago,
// so that its space is free no later. What was used just now goes only where nothing else is left.
Victim NextUsePolicy::find(const VictimQuery& query) {
  const auto may_leave = [&](const UmBlock& block) { return free_to_leave(block, query); };
  const auto farthest = [&](LaunchIndex beyond, std::size_t most, auto wanted) {
    UmBlock* const dirty = expected_.find_beyond(beyond, most, wanted);
    UmBlock* const clean = expected_clean_.find_beyond(beyond, most, wanted);
    const bool far =
        clean != nullptr &&
        clean->order.launch >= now().launch + now().iteration / parameters_.clean_far_share;
    return dirty == nullptr || far ? clean : dirty;
  };
  UmBlock* const unknown = first_evictable(may_leave);
  UmBlock* victim = farthest(beyond(query), parameters_.expected_scan,
                             [&](const UmBlock& block) { return leaves_for(block, query); });
  if (victim != nullptr && !victim->residency.clean && victim->uses.last > evicted_until_ &&
      now().launch - victim->uses.last <= launch_queue_) {
    victim = earliest_of_last(*victim, query);
  }
  if (victim == nullptr ||
      (unknown != nullptr && !victim->residency.clean && unknown->uses.last <= victim->uses.last)) {
    victim = unknown;
  }
  if (victim != nullptr || !query.last_resort) {
    return {victim};
  }
  // What the launch at hand uses itself cools down behind all others, but for what it reads where
  // it is.
  if (UmBlock* const oldest = cooling_down_.find(parameters_.victim_scan, may_leave);
      oldest != nullptr) {
    return {oldest};
  }
  victim = farthest(0, parameters_.victim_scan, may_leave);
  return {victim, victim != nullptr};
}

}  // namespace deepum::core
