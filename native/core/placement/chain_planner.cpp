#include "placement/chain_planner.hpp"

#include <algorithm>

#include "prediction/locate.hpp"

namespace deepum::core {

ChainPlanner::Options ChainPlanner::options(const deepum_core_settings& settings,
                                            const LaunchPredictor& predictor) {
  const bool by_next_use = settings.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE;
  const bool history = predictor.knows_history();
  return {by_next_use,
          history,
          by_next_use && history && settings.pre_eviction != 0,
          settings.launch_queue < settings.parameters.planner.short_queue,
          !history,
          settings.pre_eviction != 0};
}

ChainPlanner::ChainPlanner(const deepum_core_settings& settings, const Clock& now,
                           deepum_core_statistics& statistics, const LaunchChain& chain,
                           const LaunchPredictor& predictor, ExecutionTable& executions,
                           AddressSpace& memory, Devices& devices, Departures& departures,
                           GrowthForecast& growth, RoomMaker& room, Placer& placer)
    : settings_(settings),
      parameters_(settings.parameters.planner),
      now_(now),
      statistics_(statistics),
      chain_(chain),
      executions_(executions),
      memory_(memory),
      devices_(devices),
      departures_(departures),
      growth_(growth),
      room_(room),
      placer_(placer),
      options_(options(settings, predictor)) {}

void ChainPlanner::forget() {
  expected_ = placed_ = promised_ = reserved_ = 0;
  growth_.restarted();
}

void ChainPlanner::followed(const Launch&, const LaunchChain::Step& step) {
  if (step.restarted) {
    forget();
    return;
  }
  growth_.passed(step.passed);
  for (std::size_t* const cursor : {&expected_, &placed_, &promised_, &reserved_}) {
    *cursor -= std::min(*cursor, step.passed);
  }
}

// When room comes after a stall, what waited is spread over the launches that follow.
void ChainPlanner::launched(const Launch& launch) {
  DeviceMemory& device = devices_[launch.device];
  if (options_.expects_while_host_runs) {
    expect_ahead(settings_.chain_steps);
    if (options_.reserves_growth && device.residency.under_pressure()) {
      reserve_ahead(settings_.chain_steps);
      evict_ahead(device);
    }
  }
  ++launches_since_wait_;
  if (launches_since_wait_ < parameters_.soon_after_wait || options_.places_at_every_launch) {
    place_some(settings_.chain_steps);
  } else {
    place_into_spare_room(device);
  }
}

void ChainPlanner::about_to_wait() {
  launches_since_wait_ = 0;
  place_some(chain_.size());
}

void ChainPlanner::place_some(std::size_t most) {
  if (options_.reserves_growth) {
    expect_ahead(most);
    reserve_ahead(most);
    for (const auto& device : devices_.in_use()) {
      make_reserved_room(*device);
    }
  }
  const std::size_t trusted = chain_.trusted();
  for (std::size_t i = 0; i < most && placed_ < trusted && place_next(Urgency::kPlanned); ++i) {
  }
  promised_ = placed_;
}

// The launches themselves come early enough for what leaves for them, but not for what they fetch
// into space that is free long before: where launches are short, the queue of them is. So what is
// fetched takes space that is not needed on the way there, and nothing leaves for it.
void ChainPlanner::place_into_spare_room(const DeviceMemory& device) {
  if (!options_.fetches_into_spare_room || !device.residency.under_pressure()) {
    return;
  }
  const std::size_t until = std::min<std::size_t>(chain_.trusted(), parameters_.spare_ahead);
  for (std::uint32_t i = 0;
       i < settings_.chain_steps && placed_ < until && place_next(Urgency::kSpare); ++i) {
  }
}

const Execution* ChainPlanner::known(const PredictedLaunch& launch) const {
  const Execution& execution = executions_.at(launch.id);
  return execution.generation == launch.generation ? &execution : nullptr;
}

// True: the launch is placed, or nothing is known of it. False: there is no room. What is fetched
// for launches behind the one with the most content would be in the way of what comes into being
// until then.
bool ChainPlanner::place_next(Urgency urgency) {
  const LaunchIndex launch = now_.launch + placed_ + 1;
  if (growth_.fullest() > now_.launch && launch > growth_.fullest()) {
    return false;
  }
  const Execution* const execution = known(chain_[placed_]);
  if (execution == nullptr && options_.places_only_known) {
    return false;
  }
  growth_.count(placed_);
  if (execution != nullptr) {
    locate(memory_, execution->blocks, placed_ + 1, located_);
    if (!placer_.place(located_, {launch, urgency, execution->sparse,
                                  placer_.doubt_after(execution->period)})) {
      ++statistics_.window_stalls;
      return false;
    }
  }
  ++placed_;
  return true;
}

// Launches to come expect what they will use, so that other blocks leave first: always in the order
// of next use; by recency only where content does not grow and shrink. What is swept over and over
// is needed the sooner the longer ago it was used, while on the way back from a forward pass it is
// needed the later.
void ChainPlanner::expect_ahead(std::size_t most) {
  const bool expecting = options_.expects_while_host_runs || growth_.sweeping();
  const std::size_t until = std::min(chain_.trusted(), expected_ + most);
  for (; expected_ < until; ++expected_) {
    const Execution* const execution = known(chain_[expected_]);
    if (execution == nullptr) {
      continue;
    }
    locate(memory_, execution->blocks, expected_ + 1, located_);
    for (const Access& access : located_) {
      DeviceMemory& device = devices_[memory_.at(access.span.slot).device];
      if (!device.residency.under_pressure()) {
        continue;
      }
      statistics_.operations += access.span.count;
      for (UmBlock& block : memory_.blocks(access.span)) {
        if (block.residency.resident && expecting &&
            !block.on_host.read_in_place(execution->sparse)) {
          device.order->expected_one_day(block, now_.launch + expected_ + 1);
        }
      }
    }
  }
}

// What launches to come need besides what exists has no place yet, so its space is counted, and
// made while the link is idle. Once they are launched it would be late: a forward pass, which fills
// memory, would be held off by the copies out.
void ChainPlanner::reserve_ahead(std::size_t most) {
  growth_.find_fullest();
  const std::uint64_t growing =
      growth_.fullest() > now_.launch ? growth_.fullest() - now_.launch : 0;
  const std::size_t until =
      std::min<std::size_t>(std::min(chain_.trusted(), reserved_ + most), growing);
  for (; reserved_ < until; ++reserved_) {
    growth_.reserve(reserved_);
  }
}

// Room for what is reserved, while the program waits.
void ChainPlanner::make_reserved_room(DeviceMemory& device) {
  const std::uint64_t reserved = growth_.reserved_blocks(device.ordinal);
  if (reserved == 0 || !device.residency.under_pressure() || !options_.evicts_ahead) {
    return;
  }
  const std::uint64_t needed = reserved + room_.headroom(device);
  const LaunchIndex late = std::max(growth_.fullest(), now_.launch);
  while (device.residency.free() + device.order->dead_blocks() < needed) {
    UmBlock* const victim = device.order->needed_after(late, now_.launch + chain_.trusted());
    if (victim == nullptr) {
      return;
    }
    departures_.evict(*victim, late);
  }
}

// While the link is idle, before content grows: what is needed only when there will be the most of
// it, and left in the same place last time, leaves now. Once it is in the way its copy would be
// late. Of that, what was used longest ago: evictions go in order, and one that waits for a launch
// which the GPU has not come to holds up those behind it.
void ChainPlanner::evict_ahead(DeviceMemory& device) {
  const std::uint64_t reserved = growth_.reserved_blocks(device.ordinal);
  const std::uint64_t idle =
      std::max<std::uint64_t>(now_.iteration / parameters_.idle_share, parameters_.least_idle);
  if (reserved == 0 || now_.launch - device.demanded_at < idle || !options_.evicts_ahead) {
    return;
  }
  const std::uint64_t needed = reserved + room_.headroom(device);
  const std::uint64_t available = device.residency.free() + device.order->dead_blocks();
  if (available >= needed) {
    return;
  }
  leaving_.clear();
  device.order->for_each_expected_after(
      std::max(growth_.fullest(), now_.launch), [&](UmBlock& block) {
        ++statistics_.operations;
        if (block.order.prefetched ||
            (block.uses.next_use == Use::kDies && block.uses.next > now_.launch)) {
          return;
        }
        const RunUse* const run = executions_.use_by(block.uses.user);
        if (run != nullptr && run->next[static_cast<std::size_t>(block.uses.user.part)].left) {
          leaving_.push_back(&block);
        }
      });
  std::ranges::stable_sort(
      leaving_, [](const UmBlock* a, const UmBlock* b) { return a->uses.last < b->uses.last; });
  leaving_.resize(
      std::min<std::size_t>({leaving_.size(), parameters_.evicted_ahead, needed - available}));
  for (UmBlock* const block : leaving_) {
    departures_.collect(*block);
  }
  departures_.flush(now_.launch);
}

}  // namespace deepum::core
