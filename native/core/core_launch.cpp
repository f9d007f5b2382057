// The pipeline of a launch.
#include <algorithm>
#include <array>
#include <utility>

#include "core_session.hpp"
#include "range_parts.hpp"

namespace deepum::core {

bool Core::on_launch(const deepum_execute_event& event,
                     std::span<const deepum_block_range> ranges) {
  const std::uint32_t device = event.header.device;
  std::uint64_t hash = event.execution_hash;
  const bool sound = resolve(event, ranges, hash);
  begin_launch();
  detector_.launched(event.execution_hash, hash);
  now_.period = detector_.period().value_or(0);

  Execution& execution = learn_accesses(event, hash);
  const Launch launch{executions_.id_of(execution),
                      execution.generation,
                      hash,
                      event.execution_hash,
                      device,
                      execution.period,
                      execution.launches == 1,
                      execution.sparse};
  follow(launch, execution);
  recorder_.launched(event, accesses_, runs_, detector_.as_expected() || now_.period == 0);
  launch_clock_.launched(event.header.sequence, now_.launch, event.stream);

  if ((event.header.flags & DEEPUM_EXECUTE_COPY) == 0) {
    copy_back_.note_reads(accesses_);
  }
  copy_back_.before(accesses_);
  placer_.place(accesses_, {now_.launch, Urgency::kAtHand, launch.sparse,
                            placer_.doubt_after(execution.period)});
  uses_.begin_trials(accesses_, event.stream, trials_);
  growth_.launched(device);
  placer_.hold(accesses_, event.stream);
  placer_.end_holds(now_.period != 0 ? now_.period : now_.iteration);
  note_uses(event);
  iterations_.touched(accesses_);

  if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
    chain_.extend();
    copy_back_.after(accesses_, device, event.stream);
    planner_.launched(launch);
  }
  wants_free_memory_ = false;
  for (const auto& each : devices_.in_use()) {
    wants_free_memory_ |= each->residency.note_fill_point(learning_.learning());
  }
  return sound;
}

// The accesses of the launch at hand, by place and by name. The program's hash leaves places in
// PyTorch's memory out: the names of its blocks stand for them. False: some ranges are malformed.
bool Core::resolve(const deepum_execute_event& event, std::span<const deepum_block_range> ranges,
                   std::uint64_t& hash) {
  bool sound = true;
  accesses_.clear();
  runs_.clear();
  ages_.clear();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const RangeParts p = parts(ranges[i]);
    Allocation* const allocation = memory_.live(p.slot);
    if (allocation == nullptr || p.count == 0 ||
        std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
      sound = false;
      continue;
    }
    const Use use = i < event.write_ranges ? Use::kWrites
                    : only_reads(event, i) ? Use::kReads
                                           : Use::kUnknown;
    const BlockSpan span{p.slot, p.first, p.count};
    const AddressSpace::Named named = memory_.name_run(*allocation, p.first, p.count);
    accesses_.push_back({span, {use}});
    runs_.push_back(named.run);
    ages_.push_back(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(now_.launch - named.born, ~std::uint32_t{0})));
    host_groups_.note_use(span, *named.regularity);
    if (allocation->reported && named.run.name != allocation->name) {
      hash = TorchBlockNames::mix(hash ^ memory_.names().name(named.run.name));
    }
  }
  return sound;
}

// Spans may overlap: arguments may point into the same block. That is looked at only where their
// sum is too much.
bool Core::exceeds_capacity() const {
  const auto too_much = [&](std::uint32_t device, std::uint64_t blocks) {
    const ResidencyBelief& residency = devices_[device].residency;
    return residency.known() && blocks > residency.capacity();
  };
  const auto device_of = [&](const BlockSpan& span) { return memory_.at(span.slot).device; };
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES> blocks{};
  bool suspect = false;
  for (const Access& access : accesses_) {
    const std::uint32_t device = device_of(access.span);
    blocks[device] += access.span.count;
    suspect = suspect || too_much(device, blocks[device]);
  }
  if (!suspect) {
    return false;
  }
  std::vector<BlockSpan> sorted;
  sorted.reserve(accesses_.size());
  for (const Access& access : accesses_) {
    sorted.push_back(access.span);
  }
  std::ranges::sort(sorted, {},
                    [](const BlockSpan& span) { return std::pair(span.slot, span.first); });
  blocks = {};
  std::uint64_t end = 0;  // of what was counted of the slot
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const BlockSpan& span = sorted[i];
    end = i > 0 && sorted[i - 1].slot == span.slot ? end : 0;
    const std::uint64_t from = std::max<std::uint64_t>(span.first, end),
                        to = std::uint64_t{span.first} + span.count;
    if (to > from) {
      const std::uint32_t device = device_of(span);
      blocks[device] += to - from;
      end = to;
      if (too_much(device, blocks[device])) {
        return true;
      }
    }
  }
  return false;
}

void Core::begin_launch() {
  const bool over_capacity = exceeds_capacity();
  ++statistics_.launches;
  statistics_.launches_over_capacity += over_capacity ? 1 : 0;
  ++now_.launch;
  for (const auto& device : devices_.in_use()) {
    if (over_capacity) {
      device->residency.doubt_all_once();
    }
    device->order->launch_passed();
    device->window.launch_passed();
  }
}

// The tables learn what the launch is and what it touches.
Execution& Core::learn_accesses(const deepum_execute_event& event, std::uint64_t hash) {
  const ExecutionId id = executions_.identify(hash);
  executions_.learn(context_, id);
  context_.push(id);
  Execution& execution = executions_.at(id);
  execution.period = execution.last > 0 ? now_.launch - execution.last : 0;
  execution.last = now_.launch;
  execution.kernel = event.execution_hash;
  execution.sparse = (event.header.flags & DEEPUM_EXECUTE_SPARSE) != 0;
  ++execution.launches;
  const auto before = static_cast<std::ptrdiff_t>(execution.blocks.bytes());
  execution.blocks.learn(
      runs_, ages_,
      {settings_.block_table_rows, settings_.block_table_ways, settings_.block_table_successors});
  host_residents_.observe(accesses_, event.header.flags);
  uses_.learn(accesses_, execution, chain_);
  iterations_.launched(execution.period);
  // While a plan is made of what is recorded, and tried, nothing else is.
  if (recorder_.wanted()) {
    copy_back_.trial().forget();
  } else {
    copy_back_.launched();
  }
  host_groups_.launched();
  executions_.note_bytes(static_cast<std::ptrdiff_t>(execution.blocks.bytes()) - before);
  history_.append({hash, event.execution_hash, id, execution.generation, 0, event.header.device});
  return execution;
}

void Core::follow(const Launch& launch, const Execution& execution) {
  LaunchChain::Step step;
  predictor_->observe(launch);
  if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
    const bool recognised_before = chain_.recognised();
    step = chain_.follow(launch, execution);
    if (chain_.recognised() &&
        !recognised_before) {  // the program will need as much memory as that of the profile did
      for (const auto& device : devices_.all()) {
        device->residency.foretell(foretold_[device->ordinal]);
      }
    }
    planner_.followed(launch, step);
    if (step.restarted) {
      for (const auto& device : devices_.all()) {
        device->order->prediction_failed();
      }
    }
  }
  learning_.launched(launch.is_new || step.restarted);
  if (wants_faults()) {
    learning_.observe_period(launch.period);
  }
}

// Later moves of the blocks wait for the launch at hand.
void Core::note_uses(const deepum_execute_event& event) {
  departures_.note_stream(event.stream);
  if ((event.header.flags & DEEPUM_EXECUTE_GRAPH) != 0) {
    invalidation_.graph_launched();
  }
  for (const Access& access : accesses_) {
    for (UmBlock& block : memory_.blocks(access.span)) {
      block.moves.last_use = event.header.sequence;
      if (block.moves.first_use == 0) {
        block.moves.first_use = event.header.sequence;
        block.moves.first_stream = event.stream;
      }
      block.moves.streams |= 1ull << event.stream;
      block.content.populated = true;
    }
    statistics_.operations += access.span.count;
  }
}

}  // namespace deepum::core
