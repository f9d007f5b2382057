// How much managed memory a device holds: as reported when it came into use, while memory fills by what the driver says is free,
// afterwards by what it evicts on its own.
#include <algorithm>

#include "engine.hpp"
#include "range_parts.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kWorthReading = 8;         // of the capacity, the part allocated from which on it matters what is free
constexpr std::uint64_t kTolerance = 8;            // blocks by which a reading may differ: chunks are whole, memory comes and goes
constexpr std::size_t kKeptFillPoints = 1u << 14;  // launches: more than a queue of the driver's holds
constexpr std::uint64_t kLossShare = 64;           // of the capacity, the part that an iteration's losses take off at most
constexpr std::uint64_t kLeastShare = 2;           // of the initial capacity, the part that they leave

}  // namespace

void Engine::on_device(const deepum_device_event& event) {
  DeviceMemory& device = devices_[event.header.device];
  devices_in_use_ = std::max(devices_in_use_, event.header.device + 1u);
  if (event.header.kind == DEEPUM_EVENT_DEVICE) {
    device.withdrawn_blocks = 0;
  }
  device.initial_blocks = std::min(event.capacity_bytes, event.total_bytes) / kBlockBytes;
  set_capacity(device, device.initial_blocks - std::min(device.initial_blocks, device.withdrawn_blocks));
  if (!device.known) {
    device.withheld_blocks = device.capacity_blocks / 2;  // to begin with
  }
  device.known = true;
}

void Engine::set_capacity(DeviceMemory& device, std::uint64_t blocks) {
  device.capacity_blocks = blocks;
  if (device.used_blocks > device.capacity_blocks) {
    device.doubt_all_once();
  }
}

void Engine::withdraw(DeviceMemory& device, std::uint64_t capacity) {
  device.withdrawn_blocks = device.initial_blocks - std::min(device.initial_blocks, capacity);
  set_capacity(device, device.initial_blocks - device.withdrawn_blocks);
}

// How much had come by which launch. Only while nothing leaves: then what is not free is what came.
void Engine::note_fill_point() {
  wants_free_memory_ = false;
  for (DeviceMemory& device : devices_in_use()) {
    if (!device.filling || settings_.policy != DEEPUM_POLICY_CORRELATION) {
      continue;
    }
    if (device.fill_points.empty() || device.fill_points.back().arrived != device.migrations) {
      device.fill_points.push_back({sequence_, device.migrations, device.commanded});
    }
    if (device.fill_points.size() > kKeptFillPoints) {
      device.fill_points.pop_front();
    }
    // What launches that were seen before need besides, modules and libraries, is there.
    wants_free_memory_ |= device.known && learns() && device.allocated_blocks * kWorthReading >= device.capacity_blocks;
  }
}

void Engine::end_filling(DeviceMemory& device) {
  device.filling = false;
  device.fill_points.clear();
}

// The blocks that are there by now lie between those of the launches that are surely done and those of the launches that may have begun,
// and what moves brought or may have. With what is free that is how much there can be at least and at most.
void Engine::on_free_memory(const deepum_free_memory_event& event) {
  DeviceMemory& device = devices_[event.header.device];
  if (!device.known || !device.filling) {
    return;
  }
  const auto behind = [&](std::uint64_t sequence) {
    const auto next = std::ranges::upper_bound(device.fill_points, sequence, {}, &DeviceMemory::FillPoint::sequence);
    return next == device.fill_points.begin() ? DeviceMemory::FillPoint{} : *std::prev(next);
  };
  const DeviceMemory::FillPoint done = behind(event.completed), begun = behind(event.begun);
  const std::uint64_t gone = device.migrations - device.used_blocks;  // with its allocation
  const auto capacity = [&](std::uint64_t arrived) {
    const std::uint64_t there = arrived - std::min(arrived, gone) + event.free_bytes / kBlockBytes;
    return there - std::min(there, event.reserve_bytes / kBlockBytes);
  };
  const std::uint64_t least = capacity(done.arrived), most = capacity(begun.arrived + device.commanded - begun.commanded);
  if (device.capacity_blocks > most + kTolerance) {
    withdraw(device, most);
  } else if (device.capacity_blocks + kTolerance < least && device.withdrawn_blocks != 0) {
    withdraw(device, least);  // somebody gave memory back
  }
}

// Whether the driver took a block that was to stay: it was brought by command, and the faults of a launch that used it have been told
// before, so that no prefetch that came late is taken for it.
bool Engine::was_taken(const DeviceMemory& device, const Allocation& allocation, const UmBlock& block) const {
  return device.under_pressure() && !allocation.of_program && block.resident && block.moved_in > block.moved_out && !block.mostly &&
         !block.stays_away() && !block.mapped && block.first_use != 0 && block.first_use <= progress_[block.first_stream].reported;
}

// Each block that the driver took shows that one more than there is room for was asked for. One that is missing makes the driver take
// another when it comes back, so there may be more of them than the belief is too high by: an iteration's count up to a limit, and the
// next shows whether that was enough.
void Engine::note_taken(DeviceMemory& device, std::uint64_t blocks) {
  statistics_.driver_evictions_seen += blocks;
  taken_lately_ = true;
  if (position_ - device.loss_window_start > std::max(iteration_, kSettledAfter) || device.loss_window_start == 0) {
    device.loss_window_start = position_;
    device.loss_window_blocks = 0;
  }
  const std::uint64_t most = device.initial_blocks / kLossShare - std::min(device.initial_blocks / kLossShare, device.loss_window_blocks);
  const std::uint64_t least = device.initial_blocks / kLeastShare;
  const std::uint64_t off = std::min({blocks, most, device.capacity_blocks - std::min(device.capacity_blocks, least)});
  device.loss_window_blocks += off;
  withdraw(device, device.capacity_blocks - off);
}

}  // namespace deepum::core
