// A launch into tables and belief, and what is decided by it.
#include <algorithm>
#include <utility>

#include "engine.hpp"
#include "range_parts.hpp"

namespace deepum::core {
// The run in terms of the PyTorch block that it is the place of: the one that spans just these UM blocks, else the one that fills most of
// them; in terms of the allocation where there is none, or one of PyTorch's small pool, of which many share a UM block.
Engine::Named Engine::name_run(Allocation& allocation, std::uint32_t first, std::uint32_t count) {
  const Named whole{{allocation.name, first, count}, allocation.born, &allocation.regularity};
  if (allocation.active.empty()) {
    return whole;
  }
  const std::uint64_t begin = std::uint64_t{first} * kBlockBytes, end = begin + std::uint64_t{count} * kBlockBytes;
  TorchBlock* best = nullptr;
  std::uint64_t best_bytes = 0;
  auto at = allocation.active.upper_bound(begin - std::min(begin, allocation.first_offset));
  if (at != allocation.active.begin()) {
    --at;
  }
  for (; at != allocation.active.end() && at->first + allocation.first_offset < end; ++at) {
    const std::uint64_t from = at->first + allocation.first_offset, to = from + at->second.bytes;
    if (to <= begin) {
      continue;
    }
    const bool spans = from >= begin && to <= end && from / kBlockBytes == first && (to - 1) / kBlockBytes == first + count - 1;
    const std::uint64_t bytes = std::min(to, end) - std::max(from, begin) + (spans ? end : 0);
    if (bytes > best_bytes) {
      best = &at->second;
      best_bytes = bytes;
    }
  }
  if (best == nullptr || best->bytes <= TorchBlockNames::kMostSmallBytes || names_.first(best->name) > first) {
    return whole;
  }
  return {{best->name, first - names_.first(best->name), count}, best->born, &best->regularity};
}

bool Engine::on_execute(const deepum_execute_event& event, std::span<const deepum_block_range> ranges) {
  bool sound = true;
  std::uint64_t hash = event.execution_hash;
  runs_.clear();
  ages_.clear();
  spans_.clear();
  uses_.clear();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RangeParts p = parts(ranges[i]);
    Allocation* const allocation = live(p.slot);
    if (allocation == nullptr || p.count == 0 || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
      sound = false;
      continue;
    }
    spans_.push_back({p.slot, p.first, p.count});
    const Use now = i < event.write_ranges                                    ? Use::kWrites
                    : i < std::size_t{event.write_ranges} + event.read_ranges ? Use::kReads
                                                                              : Use::kUnknown;
    uses_.push_back({now, false, false});
    const Named named = name_run(*allocation, p.first, p.count);
    runs_.push_back(named.run);
    ages_.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(position_ - named.born, ~std::uint32_t{0})));
    note_regularity(*allocation, spans_.back(), *named.regularity);
    if (allocation->reported && runs_.back().name != allocation->name) {  // the program's hash leaves places in PyTorch's memory out
      hash = TorchBlockNames::mix(hash ^ names_.name(runs_.back().name));
    }
  }
  ++statistics_.launches;
  const bool over_capacity = exceeds_capacity(spans_);
  statistics_.launches_over_capacity += over_capacity ? 1 : 0;
  ++position_;
  for (DeviceMemory& device : devices_in_use()) {
    if (over_capacity) {
      device.doubt_all_once();
    }
    device.expect_none_until(position_);
    device.widen_window();
  }
  const ExecutionId id = executions_.identify(hash);
  executions_.learn(context_, id);
  Execution& execution = executions_.at(id);
  execution.period = execution.last > 0 ? position_ - execution.last : 0;
  execution.last = position_;
  execution.kernel = event.execution_hash;
  ++execution.launches;
  const std::size_t before = execution.blocks.bytes();
  execution.blocks.learn(runs_, ages_, {settings_.block_table_rows, settings_.block_table_ways, settings_.block_table_successors});
  inherit_uses(execution);
  sparse_ = execution.sparse = (event.header.flags & DEEPUM_EXECUTE_SPARSE) != 0;
  note_sparse_uses(spans_, event.header.flags);
  learn_uses(execution);
  measure_iteration(execution.period);
  if (may_ever_duplicate()) {
    pace_.launched(position_, event.header.sequence, iteration_, statistics_.bytes_copied_out + statistics_.bytes_dropped);
  }
  try_remote();
  executions_.note_bytes(static_cast<std::ptrdiff_t>(execution.blocks.bytes()) - static_cast<std::ptrdiff_t>(before));
  history_.append({hash, event.execution_hash, id, execution.generation, 0, event.header.device});
  const std::uint64_t restarts = statistics_.chain_restarts;
  follow(id);
  watch_learning(execution, restarts != statistics_.chain_restarts);

  doubt_after_ = doubt_after(execution);
  note_writes(spans_, uses_);
  place(spans_, uses_, position_, true);
  try_uses(event.stream);
  DeviceMemory& device = devices_[event.header.device];
  history_.latest().growth = static_cast<std::int32_t>(device.grown);
  history_.latest().died_away = static_cast<std::uint32_t>(device.died_away);
  device.grown = 0;
  device.died_away = 0;
  hold(spans_, event.stream);
  const std::uint64_t stream = 1ull << event.stream;
  used_streams_ |= stream;
  graphs_ = graphs_ || (event.header.flags & DEEPUM_EXECUTE_GRAPH) != 0;
  for (const BlockSpan& span : spans_) {
    Allocation& allocation = slots_[span.slot];
    for (std::uint32_t i = span.first; i < span.first + span.count; ++i) {
      UmBlock& block = allocation.blocks[i];
      block.use_sequence = event.header.sequence;
      if (block.first_use == 0) {
        block.first_use = event.header.sequence;
        block.first_stream = event.stream;
      }
      block.streams |= stream;
      block.populated = true;
    }
    statistics_.operations += span.count;
  }
  count_touched();
  if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
    extend_chain();
    queue_copies(spans_, uses_);
    copy_out_ahead(device, event.header.device, stream);
    if (settings_.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE) {
      claim_ahead(settings_.chain_steps);
      if (settings_.prediction == DEEPUM_PREDICT_HISTORY && device.under_pressure()) {
        reserve_ahead(settings_.chain_steps);
        leave_ahead(device, event.header.device);
      }
    }
    ++unwaited_;
    if (unwaited_ < kSoonAfterWait || settings_.launch_queue < kShortQueue) {
      place_ahead(settings_.chain_steps);  // a few: when room comes after a stall, what waited is spread over the launches that follow
    } else {
      fetch_ahead(device);
    }
  }
  note_fill_point();
  return sound;
}

// The longest way back to the same launch, of the latest two iterations.
void Engine::measure_iteration(std::uint64_t period) {
  longest_lately_ = std::max(longest_lately_, period);
  iteration_ = std::max(iteration_, longest_lately_);
  if (position_ - measured_ > 2 * std::max(longest_lately_, kSettledAfter)) {
    iteration_ = std::exchange(longest_lately_, 0);
    measured_ = position_;
  }
}

// An iteration is taken to be as long as the longest way back to the same launch, while faults are wanted anyway: what comes once in a
// long time does not ask for them by that.
void Engine::watch_learning(const Execution& execution, bool restarted) {
  if (execution.launches == 1 || restarted) {
    surprised_ = position_;
    longest_period_ = 0;
  }
  taken_at_ = std::exchange(taken_lately_, false) ? position_ : taken_at_;
  if (wants_faults()) {
    longest_period_ = std::max(longest_period_, execution.period);
  }
}

bool Engine::learns() const { return position_ - surprised_ <= kSettledAfter + 2 * longest_period_; }

bool Engine::wants_faults() const {
  const std::uint64_t lately = kSettledAfter + 2 * iteration_;
  const bool untold = (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && untold_ != 0 && position_ - untold_ <= lately;
  const bool taken = taken_at_ != 0 && position_ - taken_at_ <= lately;
  return untold || taken || pace_.under_way() || remote_.under_way() || learns();
}

// The program is about to wait: what the GPU does until the next launches come is the time to move what they will need. While the host
// runs ahead of the GPU there is no need to guess: what is launched is certain, and a guess's moves would go before those of launches
// nobody foresaw.
void Engine::on_wait() {
  unwaited_ = 0;
  if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
    place_ahead(chain_.size());
  }
}

}  // namespace deepum::core
