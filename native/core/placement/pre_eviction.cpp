#include "placement/pre_eviction.hpp"

#include <algorithm>

namespace deepum::core {

PreEviction::PreEviction(const deepum_core_settings& settings, const Clock& now,
                         deepum_core_statistics& statistics, Departures& departures,
                         GrowthForecast& growth)
    : statistics_(statistics),
      departures_(departures),
      settings_(settings),
      parameters_(settings.parameters.eviction),
      now_(now),
      growth_(growth),
      by_next_use_(settings.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE &&
                   settings.policy == DEEPUM_POLICY_CORRELATION),
      knows_growth_(settings.prediction == DEEPUM_PREDICT_HISTORY),
      short_queue_(settings.launch_queue < settings.parameters.planner.short_queue) {}

std::uint64_t PreEviction::headroom(const DeviceMemory& device) const {
  return std::min<std::uint64_t>(settings_.headroom_blocks,
                                 device.residency.capacity() / parameters_.headroom_share);
}

bool PreEviction::may_take_room(const DeviceMemory& device, Urgency urgency) const {
  const std::uint64_t reserved = growth_.reserved_blocks(device.ordinal);
  const bool modest = knows_growth_ && !short_queue_;
  return urgency == Urgency::kAtHand || (!modest && reserved == 0) ||
         device.residency.free() + device.order->dead_blocks() > headroom(device) + reserved;
}

UmBlock* PreEviction::next_victim(DeviceMemory& device, LaunchIndex launch, bool last_resort,
                                  bool dead_may_leave) {
  const Victim victim = device.order->victim(
      {launch, promises_->promised_until(), claim(), last_resort, dead_may_leave});
  if (victim.mistake) {
    device.note_mistake();
  }
  return victim.block;
}

bool PreEviction::make_room(DeviceMemory& device, const Request& request, const UmBlock*&) {
  if (request.urgency == Urgency::kSpare) {
    return make_spare_room(device, request.launch);
  }
  if (!may_take_room(device, request.urgency)) {
    return false;
  }
  const ResidencyBelief& residency = device.residency;
  const std::uint64_t kept_free = headroom(device);
  if (by_next_use_ && residency.free() > kept_free && residency.frees_by_evictions_only() &&
      !(request.fetches && keeps_dead(device))) {
    discard_dead(device, request.launch);
  }
  if (residency.free() <= kept_free) {
    make_batch(device, request);
  }
  return residency.free() > (request.urgency == Urgency::kAtHand ? 0 : kept_free);
}

void PreEviction::make_batch(DeviceMemory& device, const Request& request) {
  const bool at_hand = request.urgency == Urgency::kAtHand;
  const std::uint64_t batch = by_next_use_ && at_hand
                                  ? std::max<std::uint64_t>(parameters_.batch, device.wanted)
                                  : parameters_.batch;
  const std::uint64_t kept_free = headroom(device);
  while (device.residency.free() < batch + kept_free) {
    const bool last_resort = at_hand && device.residency.free() == 0;
    UmBlock* victim = request.fetches && keeps_dead(device)
                          ? next_victim(device, request.launch, false, false)
                          : nullptr;
    victim = victim != nullptr ? victim : next_victim(device, request.launch, last_resort, true);
    if (victim == nullptr) {
      break;
    }
    departures_.collect(*victim);
  }
  if (by_next_use_ && departures_.any_copied()) {
    device.demanded_at = now_.launch;
  }
  departures_.flush(request.launch);
}

// Whether what died last stays for new content that will soon come into being: that needs no link,
// so that space which comes late is in time for it, while what is fetched takes the space of what
// leaves, which was used longer ago. In the end as much leaves, only sooner.
bool PreEviction::keeps_dead(const DeviceMemory& device) {
  if (!by_next_use_ || !knows_growth_ || device.order->dead_blocks() == 0) {
    return false;
  }
  return device.order->dead_blocks() <=
         std::min(growth_.soon(device.ordinal),
                  device.residency.capacity() / parameters_.soon_share);
}

// What is fetched into spare room takes what is free, and what the dead have, as long as content
// dies rather than comes into being. Beyond some of it what a launch turns out to need besides
// would wait for its space: more is fetched only where twice as much is spared, and where an
// iteration is known to be longer than the queue.
bool PreEviction::make_spare_room(DeviceMemory& device, LaunchIndex launch) {
  const ResidencyBelief& residency = device.residency;
  const GrowthAhead& growth = growth_.placed(device.ordinal);
  const std::uint64_t spared = residency.capacity() / parameters_.spared_share;
  const std::uint64_t some = residency.capacity() / (now_.iteration > settings_.launch_queue
                                                         ? parameters_.prefetched_share
                                                         : parameters_.prefetched_little);
  const bool much = device.order->prefetched_blocks() > some;
  const std::uint64_t kept = headroom(device) + growth.most() + (much ? 2 * spared : spared);
  if ((much && now_.period <= settings_.launch_queue) || growth.rise() > spared ||
      residency.free() + device.order->dead_blocks() <= kept) {
    return false;
  }
  if (residency.free() <= headroom(device)) {
    discard_dead(device, launch);
  }
  return residency.free() > headroom(device);
}

// What the dead have is free earlier than what evictions to come leave.
void PreEviction::discard_dead(DeviceMemory& device, LaunchIndex launch) {
  std::uint64_t left = parameters_.batch;
  device.order->for_each_dead([&](UmBlock& block) {
    ++statistics_.operations;
    if (block.moves.claim != claim()) {
      departures_.evict(block, launch);
      --left;
    }
    return left > 0;
  });
}

void PreEviction::evict_surplus(DeviceMemory& device, bool all) {
  while (device.residency.used() > device.residency.capacity()) {
    UmBlock* const victim = next_victim(device, now_.launch, all, true);
    if (victim == nullptr) {
      return;
    }
    departures_.evict(*victim, now_.launch);
  }
}

}  // namespace deepum::core
