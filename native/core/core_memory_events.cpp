// What events say of memory: devices, allocations, the program's own moves and advice, faults, and
// what became of commands.
#include <algorithm>

#include "core_session.hpp"
#include "range_parts.hpp"

namespace deepum::core {
void Core::on_device(const deepum_device_event& event) {
  DeviceMemory& device = devices_[event.header.device];
  devices_.use(event.header.device);
  const bool known = device.residency.known();
  device.residency.report_capacity(event);
  if (!known) {
    device.window.begin(device.residency.capacity());
  }
}

bool Core::on_allocate(const deepum_allocate_event& event) {
  if (!memory_.allocate(event)) {
    return false;
  }
  devices_.use(event.header.device);
  devices_[event.header.device].residency.allocate(memory_.at(event.slot).blocks.size());
  return true;
}

// The space of the blocks is free with the allocation.
void Core::memory_gone(Allocation& allocation) {
  DeviceMemory& device = devices_[allocation.device];
  for (UmBlock& block : allocation.blocks) {
    if (block.residency.resident) {
      device.drop(block);
    }
  }
  device.residency.release(allocation.blocks.size());
}

bool Core::on_program_prefetch(const deepum_program_event& event) {
  std::span<UmBlock> blocks;
  if (!memory_.resolve(event.range, blocks)) {
    return false;
  }
  for (UmBlock& block : blocks) {
    DeviceMemory& device = devices_.of(block);
    if (event.location < 0 && block.residency.resident) {
      device.residency.end_filling();
      device.drop(block);
    } else if (event.location == static_cast<std::int32_t>(device.ordinal) &&
               !block.residency.resident && device.residency.free() > 0) {
      device.residency.take_space(settings_.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE);
      device.add(block);
      device.order->will_be_used(block);
      block.content.populated = true;
      device.residency.confirm(block);
    }
  }
  return true;
}

bool Core::on_program_advise(const deepum_program_event& event) {
  std::span<UmBlock> blocks;
  if (!memory_.resolve(event.range, blocks)) {
    return false;
  }
  const bool sets = event.advice == DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION;
  if (sets || event.advice == DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION) {
    HostResidents::follow_program(blocks, sets && event.location < 0);
    for (UmBlock& block : blocks) {
      DeviceMemory& device = devices_.of(block);
      device.order->pin(block, sets && event.location == static_cast<std::int32_t>(device.ordinal));
    }
  }
  return true;
}

// The blocks faulted in, so they are there now; but the belief about their neighbours is shaken.
// The write of a duplicate faults though all of it is there.
bool Core::on_fault(const deepum_fault_event& event) {
  const RangeParts p = parts(event.range);
  std::span<UmBlock> blocks;
  if (!memory_.resolve(event.range, blocks)) {
    return false;
  }
  Allocation& allocation = memory_.at(p.slot);
  ResidencyBelief& residency = devices_[allocation.device].residency;
  const bool wrote = (event.header.flags & (DEEPUM_FAULT_WRITE | DEEPUM_FAULT_ATOMIC)) != 0;
  statistics_.faults_observed += event.faults;
  statistics_.faults_observed_writing += wrote ? event.faults : 0;
  const bool evident = !(wrote && copy_back_.may_ever_duplicate());
  const std::uint64_t end = std::uint64_t{p.first} + p.count;
  const std::uint64_t shaken = settings_.parameters.residency.shaken_blocks;
  const std::uint64_t far = std::min<std::uint64_t>(end + shaken, allocation.blocks.size());
  std::uint64_t taken = 0;
  for (std::uint64_t i = p.first - std::min<std::uint64_t>(p.first, shaken); i < far; ++i) {
    UmBlock& block = allocation.blocks[i];
    if (i < p.first || i >= end) {
      residency.shake(block);
      continue;
    }
    taken +=
        evident && residency.was_taken(block, trials_.reported(block.moves.first_stream)) ? 1 : 0;
    residency.confirm(block);
    block.residency.faulted = true;
    block.residency.write_faulted = block.residency.write_faulted || wrote;
  }
  if (taken != 0) {
    residency.note_taken(taken);
    learning_.block_taken();
  }
  if (wrote && trials_.observed() && !blocks.empty()) {
    trials_.blame(blocks);
    copy_back_.write_faulted(blocks);
  }
  return true;
}

bool Core::on_progress(const deepum_progress_event& event) {
  if (event.stream >= DEEPUM_MAX_STREAMS) {
    return false;
  }
  trials_.progress(event);
  launch_clock_.completed(event);
  copy_back_.trial().completed(event.completed, event.completed_at);
  host_groups_.completed(event.completed, event.completed_at);
  return true;
}

void Core::on_usage(const deepum_usage_event& event) {
  const std::uint64_t over = event.used_bytes - std::min(event.used_bytes, event.budget_bytes);
  statistics_.budget_overshoot_bytes = std::max(statistics_.budget_overshoot_bytes, over);
}

// Launches and allocations were missed. What lives is announced again next; what was learned stays.
void Core::on_lost(const deepum_lost_event& event) {
  statistics_.events_lost += event.events;
  trials_.forget();
  copy_back_.events_lost();
  host_groups_.events_lost();
  for (const auto& device : devices_.all()) {
    device->residency.end_filling();
  }
  memory_.forget_everything();
  forget_launches();
}

// What was not carried out is not believed any longer. Commands given long ago are forgotten; doubt
// heals what they leave.
void Core::on_moved(const deepum_moved_event& event) {
  const bool refused = event.status == DEEPUM_MOVED_REFUSED;
  if (event.status != DEEPUM_MOVED_FAILED && event.status != DEEPUM_MOVED_CANCELLED && !refused) {
    return;
  }
  const deepum_command* const found = commands_.find(event.command);
  if (found == nullptr || (refused && found->kind != DEEPUM_COMMAND_DISCARD)) {
    return;
  }
  const deepum_command given = *found;
  const bool discard = given.kind == DEEPUM_COMMAND_DISCARD;
  statistics_.discards_undone += discard ? given.block_count : 0;
  if (refused) {
    invalidation_.refused();
  }
  for (std::uint64_t i = given.first_block;
       i < std::uint64_t{given.first_block} + given.block_count; ++i) {
    if (UmBlock* const block = memory_.find(given.slot, given.generation, i); block != nullptr) {
      undo(given, *block, refused);
    }
  }
  if (discard && memory_.find(given.slot, given.generation, 0) != nullptr) {
    room_->evict_surplus(devices_[memory_.at(given.slot).device], false);
  }
}

void Core::undo(const deepum_command& given, UmBlock& block, bool refused) {
  DeviceMemory& device = devices_.of(block);
  const UmBlock::Moves& moves = block.moves;
  if (given.kind == DEEPUM_COMMAND_ADVISE && given.advice == DEEPUM_MEM_ADVISE_SET_READ_MOSTLY) {
    copy_back_.duplication_failed(block);
  } else if (given.kind == DEEPUM_COMMAND_ADVISE) {
    host_residents_.advice_failed(block);
  } else if (given.kind == DEEPUM_COMMAND_COPY_OUT) {
    copy_back_.write_back_failed(block);
  } else if (given.kind == DEEPUM_COMMAND_COLLAPSE) {
    copy_back_.collapse_failed(block);
  } else if (moves.in == given.id && block.residency.resident && moves.in > moves.out) {
    device.drop(block);
  } else if (moves.discard == given.id && given.kind == DEEPUM_COMMAND_DISCARD) {
    block.content.populated = true;  // as it was
    if (block.content.dead && !refused) {
      invalidation_.failed(given.id);
    }
    if (!block.residency.resident && moves.discard > moves.in && moves.discard > moves.out) {
      device.residency.reclaim_space(given.id);
      device.add(block);
    }
  } else if (moves.out == given.id && !block.residency.resident && moves.out > moves.in) {
    device.residency.reclaim_space(0);
    device.add(block);
  }
}

bool Core::name_block(std::uint32_t slot, std::uint32_t index, std::uint64_t& name,
                      std::uint32_t& place) {
  Allocation* const allocation = memory_.live(slot);
  if (allocation == nullptr || index >= allocation->blocks.size()) {
    return false;
  }
  const BlockRun run = memory_.name_run(*allocation, index, 1).run;
  name = memory_.names().name(run.name);
  place = run.first;
  return true;
}

std::uint32_t Core::block_state(std::uint32_t slot, std::uint64_t block) const {
  const Allocation* const allocation = memory_.live(slot);
  if (allocation == nullptr || block >= allocation->blocks.size()) {
    return 0;
  }
  const UmBlock& b = allocation->blocks[block];
  return (b.residency.resident ? std::uint32_t{DEEPUM_BLOCK_RESIDENT} : 0) |
         (b.content.populated ? std::uint32_t{DEEPUM_BLOCK_POPULATED} : 0) |
         (b.residency.faulted ? std::uint32_t{DEEPUM_BLOCK_FAULTED} : 0) |
         (b.residency.write_faulted ? std::uint32_t{DEEPUM_BLOCK_WRITTEN} : 0);
}

}  // namespace deepum::core
