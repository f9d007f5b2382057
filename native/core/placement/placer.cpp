#include "placement/placer.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

// The place in kBringing of what a command of that kind brings, prefetches for all others.
constexpr std::size_t bringing(std::uint8_t kind) {
  const auto* const found = std::ranges::find(kBringing, deepum::direction_of(kind));
  return found != kBringing.end() ? static_cast<std::size_t>(found - kBringing.begin()) : 0;
}

}  // namespace

Placer::Placer(const deepum_core_settings& settings, const Clock& now,
               deepum_core_statistics& statistics, CommandStream& commands, AddressSpace& memory,
               Devices& devices, Departures& departures, GrowthForecast& growth, RoomMaker& room)
    : settings_(settings),
      now_(now),
      statistics_(statistics),
      commands_(commands),
      memory_(memory),
      devices_(devices),
      departures_(departures),
      growth_(growth),
      room_(room),
      takes_earliest_space_(decides() &&
                            settings.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE) {}

bool Placer::place(std::span<const Access> accesses, const Placement& placement) {
  if (!claim_resident(accesses, placement)) {
    return true;
  }
  for (const Access& access : accesses) {
    const std::span<UmBlock> blocks = memory_.blocks(access.span);
    statistics_.operations += blocks.size();
    for (UmBlock& block : blocks) {
      if (!block.residency.resident && !block.on_host.stays() &&
          !block.on_host.read_in_place(placement.sparse) &&
          !bring(devices_.of(block), block, access.use, placement)) {
        return false;
      }
    }
  }
  return true;
}

bool Placer::place_scheduled(UmBlock& block, const SpanUse& use, std::uint64_t period) {
  DeviceMemory& device = devices_.of(block);
  if (!decides() || !device.residency.under_pressure() || block.on_host.stays()) {
    return true;
  }
  if (block.residency.resident) {
    if (device.doubts(block, doubt_after(period))) {
      ask_again(device, block);
    }
    return true;
  }
  const LaunchIndex next_use = std::max(block.uses.next, now_.launch + 1);
  return bring(device, block, use, {next_use, Urgency::kScheduled, false, 0});
}

inline void Placer::note_use(DeviceMemory& device, UmBlock& block, const Placement& placement) {
  if (placement.urgency == Urgency::kAtHand) {
    device.order->used(block);
  } else {
    device.order->expected(block, placement.launch);
  }
}

// The block that died first leaves. False: none is dead.
bool Placer::drop_dead(DeviceMemory& device) {
  UmBlock* const dead = device.order->first_dead();
  if (dead == nullptr) {
    return false;
  }
  departures_.evict(*dead, now_.launch);
  return device.residency.free() > 0;
}

// What is there is claimed, so that bringing the rest does not evict it.
bool Placer::claim_resident(std::span<const Access> accesses, const Placement& placement) {
  const std::uint64_t claim = room_.begin_placement();
  bool missing = false;
  for (const auto& device : devices_.in_use()) {
    device->wanted = 0;
  }
  for (const Access& access : accesses) {
    const std::span<UmBlock> blocks = memory_.blocks(access.span);
    DeviceMemory& device = devices_[memory_.at(access.span.slot).device];
    const bool may_doubt = decides() && device.residency.under_pressure();
    statistics_.operations += blocks.size();
    for (UmBlock& block : blocks) {
      const bool in_place = block.on_host.read_in_place(placement.sparse);
      if (!block.residency.resident) {
        const bool away = block.on_host.stays() || in_place;
        missing = missing || !away;
        device.wanted += away ? 0 : 1;
        continue;
      }
      block.moves.claim = claim;
      if (!in_place) {
        note_use(device, block, placement);
      }
      if (may_doubt && device.doubts(block, placement.doubt_after)) {
        ask_again(device, block);
      }
    }
  }
  return missing;
}

// The block was unconfirmed for long: the driver may have taken it. A prefetch of what is there
// does not wait for a copy of it. What is to be populated may not be there yet: before there is
// space for it, it would take another's. Without pre-eviction the prefetch renews the block's place
// in the driver's order.
void Placer::ask_again(DeviceMemory& device, UmBlock& block) {
  commands_.move(block.moves.in_by == DEEPUM_COMMAND_POPULATE ? DEEPUM_COMMAND_POPULATE
                                                              : DEEPUM_COMMAND_PREFETCH,
                 block, {0, 0, block.moves.out_keeps ? 0 : block.moves.out});
  statistics_.bytes_prefetched -= kBlockBytes;
  statistics_.bytes_prefetched_again += kBlockBytes;
  device.residency.confirm(block);
  device.note_refetch(block);
}

// A little less than the period, since iterations differ a little; not after every launch where one
// kernel is launched over and over.
std::uint64_t Placer::doubt_after(std::uint64_t period) const {
  const std::uint64_t most = settings_.confidence_launches;
  return period == 0
             ? most
             : std::min(most, std::max<std::uint64_t>(period - period / 8,
                                                      settings_.parameters.residency.least_doubt));
}

bool Placer::bring(DeviceMemory& device, UmBlock& block, SpanUse use_for,
                   const Placement& placement) {
  const bool at_hand = placement.urgency == Urgency::kAtHand;
  const bool decide = decides() && device.residency.under_pressure();
  const deepum_command_kind entry = entry_of(device, block);
  const bool fetches = entry == DEEPUM_COMMAND_PREFETCH && block.content.populated;
  const UmBlock* outgoing = nullptr;
  if (decide) {
    if (placement.urgency == Urgency::kScheduled) {  // what the plan evicted has made the room
      if (device.residency.free() == 0 && !drop_dead(device)) {
        return false;
      }
    } else if (!at_hand &&
               !device.window.admits(device.ahead_blocks(), device.residency.capacity())) {
      return false;
    } else if (!room_.make_room(device, {placement.launch, placement.urgency, fetches}, outgoing)) {
      // A launch at hand that does not fit runs all the same: the driver makes its room.
      return at_hand;
    }
    if (block.moves.evicted_for > placement.launch) {
      device.note_mistake();
    }
  } else if (device.residency.known() && device.residency.free() == 0) {  // as the driver will do
    if (UmBlock* const first = device.order->first(); first != nullptr) {
      device.residency.end_filling();
      device.drop(*first);
    }
  }
  block.moves.evicted_for = 0;
  growth_.filled(block);
  block.content.filled = block.content.fresh ? now_.launch : block.content.filled;
  block.content.fresh = false;
  if (decide) {
    for (TransferRule* const rule : rules_) {
      rule->before_entry(block, use_for);
    }
  }
  const Space space = device.residency.take_space(fetches && takes_earliest_space_);
  device.wanted -= std::min<std::uint64_t>(device.wanted, 1);
  device.add(block);
  block.moves.claim = room_.claim();
  note_use(device, block, placement);
  block.moves.first_use = 0;
  if (!at_hand) {
    device.order->mark_prefetched(block);
  }
  device.residency.count_arrival(decide, fetches);
  device.residency.confirm(block);
  block.moves.streams = 0;
  statistics_.peak_resident_bytes =
      std::max(statistics_.peak_resident_bytes, device.residency.used() * kBlockBytes);
  if (decide) {
    fetch(device, block, entry, space, outgoing);
  }
  return true;
}

// A prefetch populates what has no content yet. The driver evicts in the order of what comes, which
// is that of commands of one direction only.
inline deepum_command_kind Placer::entry_of(const DeviceMemory& device, const UmBlock& block) {
  return block.content.populated || device.driver_evicts() ? DEEPUM_COMMAND_PREFETCH
                                                           : DEEPUM_COMMAND_POPULATE;
}

void Placer::fetch(DeviceMemory& device, UmBlock& block, deepum_command_kind kind, Space space,
                   const UmBlock* outgoing) {
  commands_.fence(device.ordinal, kind,
                  std::max(block.moves.discard, space.discarded ? space.move : 0));
  const MoveId evicted = space.discarded ? 0 : space.move;
  if (commands_.direction_of(evicted) != commands_.direction_of(block.moves.out)) {
    commands_.fence(device.ordinal, kind, std::min(evicted, block.moves.out));
  }
  After after{0, 0, std::max(block.moves.out, evicted)};
  if (outgoing != nullptr) {
    after.launch = outgoing->moves.last_use;
    after.streams = outgoing->moves.streams;
  }
  commands_.move(kind, block, after);
  block.moves.fetch = block.moves.in;
  block.content.populated = true;
}

// A launch that starts before its prefetches are done faults on what they are about to bring, at
// several times the cost, and the driver makes room for it by evicting what it likes, behind the
// belief's back. So it is held until they are done. What a prefetch waits for was launched before;
// still a program may let a stream wait for what it does later (a value that it writes), so the
// hold says whether evictions wait for launches of other streams than its own.
void Placer::hold(std::span<const Access> accesses, std::uint32_t stream) {
  if (!decides()) {
    return;
  }
  std::array<Brought, DEEPUM_MAX_DEVICES> until{};
  for (const Access& access : accesses) {
    for (const UmBlock& block : memory_.blocks(access.span)) {
      MoveId& latest = until[block.key.device][bringing(block.moves.in_by)];
      latest = std::max(latest, block.moves.fetch);
    }
  }
  for (std::uint32_t device = 0; device < devices_.count(); ++device) {
    const bool alone = departures_.wait_for_stream_alone(device, stream);
    for (std::size_t i = 0; i < until[device].size(); ++i) {
      MoveId& held = held_[device][stream][i];
      if (until[device][i] > held) {
        held = until[device][i];
        commands_.hold_launch(device, stream, held, !alone);
        holds_ = true;
        short_at_ = now_.launch;
      }
    }
  }
}

void Placer::end_holds(std::uint64_t iteration) {
  if (!holds_) {
    return;
  }
  if (devices_.under_pressure()) {
    short_at_ = now_.launch;
  } else if (now_.launch - short_at_ >
             2 * std::max<std::uint64_t>(iteration, settings_.parameters.iteration.least_period)) {
    commands_.end_holds();
    holds_ = false;
  }
}

}  // namespace deepum::core
