// What launches do with what they touch: how many launches later it is touched again, and whether they write it. Arguments do not tell
// that; but the write of a duplicate faults. So uses of duplicates are trials: while the GPU's faults are observed, a launch that has run
// without one reads, and one among those that were running when a fault was seen writes.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::size_t kMostTrials = 1u << 14;  // of a stream
constexpr std::uint64_t kLongestGap = ~std::uint32_t{0};

}  // namespace

// What is launched for the first time with just these blocks is used on as what the chain expected in its place was: where what a launch
// makes lies elsewhere each time, its execution is another.
void Engine::inherit_uses(Execution& execution) {
  if (chain_.empty() || execution.blocks.knows_next()) {
    return;
  }
  const std::size_t at = find_in_chain(executions_.id_of(execution));
  if (at == chain_.size()) {
    return;
  }
  const Execution& like = executions_.at(chain_[at].id);
  if (&like != &execution && like.generation == chain_[at].generation) {
    execution.blocks.inherit_next(like.blocks);
    statistics_.operations += execution.blocks.uses().size();
  }
}

// What was used last by another launch is used next by this one.
void Engine::learn_uses(Execution& execution) {
  execution.blocks.find_places(uses_.size(), places_);
  const ExecutionId id = executions_.id_of(execution);
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    RunUse* const run = execution.blocks.use(places_[i]);
    Allocation& allocation = slots_[spans_[i].slot];
    BlockUser user{id, execution.generation, execution.blocks.uses_turn(), places_[i]};
    UmBlock* const blocks = allocation.blocks.data() + spans_[i].first;
    uses_[i].creates = blocks[spans_[i].count / 2].user.id == kNoExecution;
    if (run != nullptr) {
      uses_[i].now = uses_[i].now == Use::kUnknown ? run->now : uses_[i].now;
      uses_[i].leaves = run->leaves();
      run->now = uses_[i].now;
    }
    BlockUser before;
    for (const UmBlock* block = blocks; block != blocks + spans_[i].count; ++block) {
      if (block->used != position_ && block->user != before && !passes_over(*block)) {
        learn_next(*block, uses_[i]);
        before = block->user;
      }
    }
    // Known only now: it may have followed itself.
    for (UmBlock* block = blocks; block != blocks + spans_[i].count; ++block) {
      if ((run == nullptr && block->used == position_) || passes_over(*block)) {
        continue;  // an argument before this one told more
      }
      user.part = part_of(static_cast<std::uint32_t>(block - blocks), spans_[i].count);
      const NextUse next = run == nullptr ? NextUse{} : run->next[static_cast<std::size_t>(user.part)];
      block->left = false;
      block->used = position_;
      block->touched = touched_;
      block->user = user;
      if (uses_[i].now == Use::kWrites || (uses_[i].now != Use::kReads && !block->copied)) {  // the write of a copied one would be told
        judge_copy(*block, false);
        block->writer = user;
      }
      block->awaited = next.gap == 0 ? 0 : position_ + next.gap;
      block->next_use = next.use;
    }
  }
}

// Of the launch at hand.
void Engine::count_touched() {
  ++touched_;
  for (const BlockSpan& span : spans_) {
    touched_ += span.count;
  }
  touched_lately_ = std::max(touched_lately_, touched_ - touched_before_);
  if (position_ - counted_from_ >= iteration_) {
    touched_lately_ = touched_ - std::exchange(touched_before_, touched_);
    counted_from_ = position_;
  }
}

RunUse* Engine::use_by(const BlockUser& user) {
  if (user.id == kNoExecution) {
    return nullptr;
  }
  Execution& execution = executions_.at(user.id);
  return execution.generation == user.generation && execution.blocks.uses_turn() == user.turn ? execution.blocks.use(user.run) : nullptr;
}

// Of blocks of one part of a run the one that waits longest tells: others are met earlier by others, which then know of them. That content
// leaves after the next use, too, is known to the launch before once that one knows it: a launch further back with each iteration.
void Engine::learn_next(const UmBlock& block, SpanUse use) {
  RunUse* const run = use_by(block.user);
  if (run == nullptr) {
    return;
  }
  NextUse& next = run->next[static_cast<std::size_t>(block.user.part)];
  const auto gap = static_cast<std::uint32_t>(std::min(position_ - block.used + (use.now == Use::kDies ? 1 : 0), kLongestGap));
  const auto touched = static_cast<std::uint32_t>(std::min(touched_ - block.touched, kLongestGap));
  const auto round = static_cast<std::uint32_t>(block.used);
  const bool representative = pace_.representative();
  if (next.round != round || gap > next.gap) {
    const bool stands = next.round == round || !representative;
    next = {use.now, gap, touched, round, stands && next.left, stands && next.leaves};
  }
  next.left |= representative && block.left;
  next.leaves |= representative && (block.left || (use.leaves && use.now != Use::kWrites));
}

// Faults may have been lost, so that nobody is known to read for want of one.
void Engine::forget_trials() {
  for (Progress& progress : progress_) {
    progress.trials.clear();
  }
}

// The launch at hand, its blocks being in place.
void Engine::try_uses(std::uint32_t stream) {
  std::deque<Trial>& trials = progress_[stream].trials;
  for (std::size_t i = 0; i < spans_.size() && faults_are_told_; ++i) {
    const Allocation& allocation = slots_[spans_[i].slot];
    const UmBlock& block = allocation.blocks[spans_[i].first + spans_[i].count / 2];
    if (!block.copied || places_[i] == BlockTable::kNotInChain) {
      continue;
    }
    untold_ = uses_[i].now == Use::kUnknown ? position_ : untold_;
    if (trials.size() == kMostTrials) {
      trials.pop_front();
    }
    BlockUser user = block.user;  // of this launch, if by another of its arguments
    user.run = places_[i];
    trials.push_back({sequence_, user, block.slot, allocation.generation, block.index});
  }
}

// nullptr: it is gone.
const UmBlock* Engine::tried(const Trial& trial) const {
  const Allocation& allocation = slots_[trial.slot];
  const bool lives = allocation.live && allocation.generation == trial.generation && trial.block < allocation.blocks.size();
  return lives ? &allocation.blocks[trial.block] : nullptr;
}

// How far a stream was at a look for faults, before the faults of that look are told. Launches that had completed at the look before have
// had theirs told: who was not blamed reads.
bool Engine::on_progress(const deepum_progress_event& event) {
  if (event.stream >= DEEPUM_MAX_STREAMS) {
    return false;
  }
  faults_are_told_ = true;
  Progress& progress = progress_[event.stream];
  std::deque<Trial>& trials = progress.trials;
  for (; !trials.empty() && trials.front().sequence <= progress.completed; trials.pop_front()) {
    const Trial& trial = trials.front();
    ++statistics_.operations;
    RunUse* const run = use_by(trial.user);
    const UmBlock* const block = tried(trial);
    if (run != nullptr && run->now == Use::kUnknown && block != nullptr && block->single_since < trial.sequence) {
      run->now = Use::kReads;
    }
  }
  progress.reported = std::exchange(progress.completed, event.completed);
  progress.begun = event.begun;
  begun_ = std::max(begun_, event.begun);
  times_are_told_ |= event.completed_at != 0;
  pace_.completed(event.completed, event.completed_at);
  remote_.completed(event.completed, event.completed_at);
  return true;
}

// A write was seen to fault.
void Engine::note_written(const BlockSpan& span) {
  if (!faults_are_told_) {  // nor is it known who may have written
    return;
  }
  for (const bool all : {false, true}) {
    if (blame(span, all)) {
      break;
    }
  }
  Allocation& allocation = slots_[span.slot];
  for (std::uint32_t b = span.first; b < span.first + span.count; ++b) {
    UmBlock& block = allocation.blocks[b];
    if (block.mostly && block.copied_since <= begun_) {  // else what was written then was copied later
      judge_copy(block, false);
      block.single_since = sequence_;
      devices_[allocation.device].uncopy(block);
    }
  }
}

// Of the trials that may have been running since the last look one wrote. Who is known to read goes free, unless there is nobody else. Of
// several of the same blocks on one stream the first did: what came behind a write was no trial any more. If it only read, nothing is lost
// by taking it for the writer but what it could leave without a copy; who wrote then is found where the block is copied again.
bool Engine::blame(const BlockSpan& span, bool all) {
  bool found = false;
  std::vector<std::uint32_t> blamed;  // of the stream
  for (Progress& progress : progress_) {
    blamed.clear();
    for (const Trial& trial : progress.trials) {
      if (trial.sequence > progress.begun) {
        break;
      }
      ++statistics_.operations;
      RunUse* const run = use_by(trial.user);
      if (run != nullptr && trial.slot == span.slot && trial.block >= span.first && trial.block - span.first < span.count &&
          tried(trial) != nullptr && (all || run->now != Use::kReads) &&
          std::find(blamed.begin(), blamed.end(), trial.block) == blamed.end()) {
        blamed.push_back(trial.block);
        run->now = Use::kWrites;
        found = true;
      }
    }
  }
  return found;
}

}  // namespace deepum::core
