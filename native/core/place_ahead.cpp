// Launches to come are placed: when the program waits all that are trusted, soon after it a few, and while the host runs ahead what there
// is room for.
#include <algorithm>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::size_t kFetchedAhead = 3072;  // launches ahead of the latest for which content is fetched while the host runs ahead,
constexpr std::uint64_t kFetchedShare = 8;   // the part of the device that may hold what was,
constexpr std::uint64_t kLittle = 32;        // where all of an iteration is at hand long before it runs, and
constexpr std::uint64_t kSpared = 16;        // the part that is left to what comes into being

}  // namespace

// True: so it is, or nothing is known of it. False: there is no room.
bool Engine::place_next() {
  Link& link = chain_[placed_];
  const Execution& execution = executions_.at(link.id);
  if (fullest_ > position_ && position_ + placed_ + 1 > fullest_) {
    return false;  // what is fetched for later would be in the way of what comes into being until then
  }
  const bool known = execution.generation == link.generation && execution.launches >= kProven;
  if (!known && settings_.prediction == DEEPUM_PREDICT_TABLES) {
    return false;
  }
  count_growth(link);
  doubt_after_ = doubt_after(execution);
  sparse_ = execution.sparse;
  const std::span<const BlockSpan> spans = known ? locate(execution.blocks, placed_ + 1) : std::span<const BlockSpan>{};
  if (known && !place(spans, located_uses_, position_ + placed_ + 1, false)) {
    ++statistics_.window_stalls;
    return false;
  }
  ++placed_;
  return true;
}

void Engine::count_growth(Link& link) {
  if (link.counted || !history_.holds(link.place)) {
    return;
  }
  const PastLaunch& past = history_.at(link.place);
  link.device = past.device;
  link.growth = past.needs();
  link.counted = true;
  devices_[past.device].growth_ahead.add(link.place, link.growth);
}

void Engine::place_ahead(std::size_t most) {
  if (settings_.prediction == DEEPUM_PREDICT_HISTORY) {
    claim_ahead(most);
    reserve_ahead(most);
    for (std::uint32_t ordinal = 0; ordinal < devices_in_use_; ++ordinal) {
      make_reserved_room(devices_[ordinal], ordinal);
    }
  }
  const std::size_t trust = trusted();
  for (std::size_t i = 0; i < most && placed_ < trust && place_next(); ++i) {
  }
  promised_ = placed_;
}

// The launches themselves come early enough for what leaves for them, but not for what they fetch into space that is free long before:
// where launches are short, the queue of them is. So what is fetched takes space that nobody will need on the way there, and nothing leaves
// for it.
void Engine::fetch_ahead(const DeviceMemory& device) {
  if (!device.by_next_use || device.driver_evicts || settings_.prediction != DEEPUM_PREDICT_HISTORY || !device.under_pressure()) {
    return;
  }
  fetching_ahead_ = true;
  const std::size_t until = std::min(trusted(), kFetchedAhead);
  for (std::uint32_t i = 0; i < settings_.chain_steps && placed_ < until && place_next(); ++i) {
  }
  fetching_ahead_ = false;
}

// It leaves for a launch at hand: the launches from that one on that was to find it are placed anew.
void Engine::draw_back(const UmBlock& victim) {
  if ((victim.place == BlockPlace::kExpected || victim.place == BlockPlace::kExpectedCopied) && victim.use_position > position_) {
    placed_ = std::max(promised_, std::min<std::size_t>(placed_, victim.use_position - position_ - 1));
  }
}

// Room for what is fetched ahead: what is free, and what the dead have, as long as content dies rather than comes into being. Not more than
// some, since what a launch turns out to need besides waits for its space.
bool Engine::spare_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position) {
  const std::uint64_t spared = device.capacity_blocks / kSpared;
  const std::uint64_t kept = headroom(device) + device.growth_ahead.most() + spared;
  const std::uint64_t share = iteration_ > device.launch_queue ? kFetchedShare : kLittle;
  if (device.fetched_blocks > device.capacity_blocks / share || device.growth_ahead.rise() > spared ||
      device.free_blocks() + device.dead.size() <= kept) {
    return false;
  }
  if (device.free_blocks() <= headroom(device)) {
    discard_dead(device, ordinal, position);
  }
  return device.free_blocks() > headroom(device);
}

}  // namespace deepum::core
