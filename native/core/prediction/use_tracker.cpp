#include "prediction/use_tracker.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

constexpr std::uint64_t kLongestGap = ~std::uint32_t{0};

}  // namespace

// What is launched for the first time with just these blocks is used on as what the chain expected
// in its place was: where what a launch makes lies elsewhere each time, its execution is another.
void UseTracker::inherit(Execution& execution, const LaunchChain& chain) {
  if (chain.empty() || execution.blocks.knows_next()) {
    return;
  }
  const std::size_t at = chain.find(executions_.id_of(execution), execution);
  if (at == chain.size()) {
    return;
  }
  const Execution& like = executions_.at(chain[at].id);
  if (&like != &execution && like.generation == chain[at].generation) {
    execution.blocks.inherit_next(like.blocks);
    statistics_.operations += execution.blocks.uses().size();
  }
}

// What was used last by another launch is used next by this one.
void UseTracker::learn(std::span<Access> accesses, Execution& execution, const LaunchChain& chain) {
  inherit(execution, chain);
  execution.blocks.find_places(accesses.size(), places_);
  const ExecutionId id = executions_.id_of(execution);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    RunUse* const run = execution.blocks.use(places_[i]);
    const std::span<UmBlock> blocks = memory_.blocks(accesses[i].span);
    SpanUse& use = accesses[i].use;
    use.creates = blocks[blocks.size() / 2].uses.user.id == kNoExecution;
    if (run != nullptr) {
      use.now = use.now == Use::kUnknown ? run->now : use.now;
      use.leaves = run->leaves();
      run->now = use.now;
    }
    if (reads_are_declared_ && use.now == Use::kUnknown) {
      use.now = Use::kWrites;
    }
    BlockUser before;
    for (const UmBlock& block : blocks) {
      if (block.uses.last != now_.launch && block.uses.user != before &&
          !block.on_host.read_in_place(execution.sparse)) {
        learn_next(block, use);
        before = block.uses.user;
      }
    }
    // The launch's own next use is known only now: it may have followed itself.
    BlockUser user{id, execution.generation, execution.blocks.uses_turn(), places_[i]};
    for (std::uint32_t b = 0; b < blocks.size(); ++b) {
      UmBlock& block = blocks[b];
      const bool known_by_earlier_argument = run == nullptr && block.uses.last == now_.launch;
      if (!known_by_earlier_argument && !block.on_host.read_in_place(execution.sparse)) {
        user.part = part_of(b, static_cast<std::uint32_t>(blocks.size()));
        note_use(block, run, user, use);
      }
    }
  }
}

void UseTracker::note_use(UmBlock& block, const RunUse* run, BlockUser user, SpanUse use) {
  const NextUse next = run == nullptr ? NextUse{} : run->next[static_cast<std::size_t>(user.part)];
  block.uses.left_since = false;
  block.uses.last = now_.launch;
  block.uses.work = now_.work;
  block.uses.user = user;
  if (use.now == Use::kWrites ||
      (use.now != Use::kReads && !block.residency.clean)) {  // the write of a clean one would fault
    if (block.host_copy.ahead_of_need) {
      listener_.written_back_in_vain(block);
    }
    block.uses.writer = user;
  }
  block.uses.next = next.gap == 0 ? 0 : now_.launch + next.gap;
  block.uses.next_use = next.use;
}

// Of blocks of one part of a run the one that waits longest tells: others are met earlier by
// others, which then know of them. That content leaves after the next use, too, is known to the
// launch before once that one knows it: a launch further back with each iteration.
void UseTracker::learn_next(const UmBlock& block, SpanUse use) {
  RunUse* const run = executions_.use_by(block.uses.user);
  if (run == nullptr) {
    return;
  }
  NextUse& next = run->next[static_cast<std::size_t>(block.uses.user.part)];
  const std::uint64_t launches = now_.launch - block.uses.last + (use.now == Use::kDies ? 1 : 0);
  const auto gap = static_cast<std::uint32_t>(std::min(launches, kLongestGap));
  const auto work = static_cast<std::uint32_t>(std::min(now_.work - block.uses.work, kLongestGap));
  const auto round = static_cast<std::uint32_t>(block.uses.last);
  if (next.round != round || gap > next.gap) {
    const bool stands = next.round == round || !representative_;
    next = {use.now, gap, work, round, stands && next.left, stands && next.leaves};
  }
  next.left |= representative_ && block.uses.left_since;
  next.leaves |=
      representative_ && (block.uses.left_since || (use.leaves && use.now != Use::kWrites));
}

void UseTracker::begin_trials(std::span<const Access> accesses, std::uint32_t stream,
                              UseTrials& trials) const {
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const std::span<const UmBlock> blocks = memory_.blocks(accesses[i].span);
    const UmBlock& block = blocks[blocks.size() / 2];
    if (block.residency.clean && places_[i] != BlockTable::kNotInChain) {
      BlockUser user = block.uses.user;  // of this launch, if by another of its arguments
      user.run = places_[i];
      trials.begin(block, user, stream, accesses[i].use.now == Use::kUnknown);
    }
  }
}

void UseTracker::forget() {
  for (Allocation& allocation : memory_.slots()) {
    for (UmBlock& block : allocation.blocks) {
      block.uses.user = {};
      block.uses.next = 0;
    }
  }
}

void UseTracker::content_died(UmBlock& block, bool) {
  learn_next(block, {Use::kDies, false, false});
  block.uses.user = {};
  block.uses.next = 0;
}

}  // namespace deepum::core
