#include "device_allocator.hpp"

#include <algorithm>
#include <utility>

#include "cuda_runtime.hpp"
#include "torch_calls.hpp"

namespace deepum::arena_allocator {
namespace {

constexpr std::int64_t kGranule = 512;             // as the caching allocator's
constexpr std::int64_t kWorthArena = 1 << 20;      // smaller ones have segments to share
constexpr std::uint64_t kLookEvery = 32;           // requests
constexpr int kMostTries = 4;                      // to have an arena of the driver
constexpr int kCleanIterations = 2;                // until what was there before is gone
constexpr std::int64_t kArenaGranule = 2ll << 20;  // of the driver's

}  // namespace

void* DeviceAllocator::allocate(std::size_t bytes, cudaStream_t stream, const Settings& settings) {
  const auto rounded = static_cast<std::int64_t>((bytes + kGranule - 1) / kGranule * kGranule);
  if (rounded <= 0) {
    return nullptr;
  }
  finish_pending(false);
  const std::optional<Follower::Place> place = follower_.requested(request_hash(rounded, stream));
  const std::uint64_t number = recorder_.requested(rounded, stream);
  statistics_.requests += 1;
  if (place && place->request == 0) {
    begin_iteration(follower_.plans()[place->plan]);
  }
  const Address memory = take(rounded, stream, place);
  if (memory == 0) {
    recorder_.freed(number, rounded);
    statistics_.failures += 1;
    return nullptr;
  }
  auto* const pointer = reinterpret_cast<void*>(memory);
  const bool of_arena = arena_ && memory >= arena_->memory &&
                        memory < arena_->memory + static_cast<Address>(arena_->ranges.bytes());
  blocks_[pointer] = {rounded, number, of_arena, {}};
  statistics_.live_bytes += rounded;
  statistics_.allocated_bytes += rounded;
  statistics_.peak_live_bytes = std::max(statistics_.peak_live_bytes, statistics_.live_bytes);
  report(pointer, rounded);
  look_for_plans(place, settings);
  return pointer;
}

// Behind the latest request.
void DeviceAllocator::look_for_plans(std::optional<Follower::Place> place,
                                     const Settings& settings) {
  if (std::optional<std::optional<Plan>> finished = maker_.finished(); finished && *finished) {
    statistics_.plans += 1;
    statistics_.plan_seconds += (*finished)->seconds;
    follower_.add(*std::move(*finished), recorder_.count() - planned_at_);
    tries_ = kMostTries;
  }
  if (!place && !maker_.is_busy() && recorder_.count() % kLookEvery == 0) {
    if (std::optional<std::vector<Request>> iteration = recorder_.iteration()) {
      planned_at_ = recorder_.count();
      maker_.start(*std::move(iteration), settings.seconds, settings.in_background);
    }
  }
}

void DeviceAllocator::begin_iteration(const Plan& plan) {
  statistics_.iterations += 1;
  statistics_.plan_bytes = plan.height;
  statistics_.plan_load_bytes = plan.load;
  statistics_.plan_requests = static_cast<std::int64_t>(plan.hashes.size());
  statistics_.plan_excluded_bytes = plan.excluded_bytes;
  if (follows(plan) && arena_->ranges.bytes() >= plan.height) {
    if (clean_ > 0) {
      clean_ -= 1;
      pool_.release_free();
    }
  } else if (tries_ > 0 && (!arena_ || release_arena())) {
    tries_ -= 1;
    pool_.release_free();
    std::int64_t height = 0;
    for (const Plan& each : follower_.plans()) {
      height = std::max(height, each.stream == plan.stream ? each.height : 0);
    }
    const std::int64_t bytes = (height + kArenaGranule - 1) / kArenaGranule * kArenaGranule;
    if (const Address memory = obtain(bytes)) {
      arena_.emplace(Arena{memory, plan.stream, ArenaMemory(bytes)});
      statistics_.arena_bytes = bytes;
      clean_ = kCleanIterations;
    }
  }
}

Address DeviceAllocator::take(std::int64_t bytes, cudaStream_t stream,
                              std::optional<Follower::Place> place) {
  Address memory = 0;
  if (place) {
    memory = take_planned(bytes, *place);
  } else if (!follower_.plans().empty()) {
    statistics_.deviating += 1;
    if (follower_.is_lost() && bytes > kWorthArena) {
      memory = take_from_arena(bytes, stream);
    }
  }
  if (memory == 0) {
    memory = take_pooled(bytes, stream);
  }
  if (memory == 0) {
    memory = take_from_arena(bytes, stream);
  }
  if (memory == 0 && finish_pending(true)) {
    memory = take_pooled(bytes, stream);
  }
  if (memory == 0 && release_arena()) {
    memory = take_pooled(bytes, stream);
  }
  return memory;
}

Address DeviceAllocator::take_planned(std::int64_t bytes, const Follower::Place& place) {
  const Plan& plan = follower_.plans()[place.plan];
  const std::int64_t offset = plan.offsets[place.request];
  if (offset < 0 || !follows(plan)) {
    statistics_.unplanned += 1;
    return 0;
  }
  if (!arena_->ranges.take(offset, bytes)) {
    statistics_.conflicts += 1;  // another iteration of the same sizes, perhaps
    return bytes > kWorthArena ? take_from_arena(bytes, plan.stream) : 0;
  }
  statistics_.planned += 1;
  return arena_->memory + static_cast<Address>(offset);
}

Address DeviceAllocator::take_pooled(std::int64_t bytes, cudaStream_t stream) {
  return pool_.take(bytes, stream,
                    std::max(statistics_.peak_live_bytes, statistics_.live_bytes + bytes));
}

Address DeviceAllocator::take_from_arena(std::int64_t bytes, const void* stream) {
  if (!arena_ || arena_->stream != stream) {
    return 0;
  }
  const std::optional<std::int64_t> offset = arena_->ranges.take_anywhere(bytes);
  return offset ? arena_->memory + static_cast<Address>(*offset) : 0;
}

bool DeviceAllocator::free(void* memory) {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) {
    return false;
  }
  const Block block = std::move(found->second);
  blocks_.erase(found);
  recorder_.freed(block.number, block.bytes);
  statistics_.live_bytes -= block.bytes;
  report(memory, -block.bytes);
  const auto address = reinterpret_cast<Address>(memory);
  std::vector<cudaEvent_t> events;
  for (cudaStream_t const stream : block.streams) {
    if (cudaEvent_t const event = CudaRuntime::instance().record(stream)) {
      events.push_back(event);
    } else {
      CudaRuntime::instance().wait_for_stream(stream);
    }
  }
  if (events.empty()) {
    give_back(address, block.of_arena);
  } else {
    pending_.push_back({address, block.of_arena, std::move(events)});
  }
  return true;
}

bool DeviceAllocator::record_stream(void* memory, cudaStream_t stream) {
  const auto found = blocks_.find(memory);
  if (found == blocks_.end()) {
    return false;
  }
  std::vector<cudaStream_t>& streams = found->second.streams;
  if (std::ranges::find(streams, stream) == streams.end()) {
    streams.push_back(stream);
  }
  return true;
}

void DeviceAllocator::give_back(Address memory, bool of_arena) {
  if (of_arena) {
    arena_->ranges.give_back(static_cast<std::int64_t>(memory - arena_->memory));
  } else {
    pool_.give_back(memory);
  }
}

// True: there were some that are handed out again now.
bool DeviceAllocator::finish_pending(bool wait) {
  const CudaRuntime& cuda = CudaRuntime::instance();
  return std::erase_if(pending_, [&](Pending& each) {
           std::erase_if(each.events, [&](cudaEvent_t event) {
             if (wait) {
               cuda.wait(event);
             }
             const bool done = wait || cuda.is_done(event);
             if (done) {
               cuda.destroy(event);
             }
             return done;
           });
           if (each.events.empty()) {
             give_back(each.memory, each.of_arena);
           }
           return each.events.empty();
         }) > 0;
}

// False: there is none, or some of it is in use.
bool DeviceAllocator::release_arena() {
  if (!arena_ || arena_->ranges.live_bytes() != 0) {
    return false;
  }
  statistics_.arena_bytes = 0;
  release(arena_->memory, arena_->ranges.bytes());
  arena_.reset();
  return true;
}

void DeviceAllocator::reset() {
  finish_pending(true);
  pool_.release_free();
}

Address DeviceAllocator::obtain(std::int64_t bytes) {
  if (limit_ != 0 && statistics_.held_bytes + bytes > limit_) {
    return 0;
  }
  statistics_.driver_calls += 1;
  void* const memory = CudaRuntime::instance().allocate(device_, static_cast<std::size_t>(bytes));
  if (memory != nullptr) {
    statistics_.held_bytes += bytes;
    statistics_.peak_held_bytes = std::max(statistics_.peak_held_bytes, statistics_.held_bytes);
  }
  return reinterpret_cast<Address>(memory);
}

void DeviceAllocator::release(Address memory, std::int64_t bytes) {
  statistics_.driver_calls += 1;
  statistics_.held_bytes -= bytes;
  CudaRuntime::instance().release(device_, reinterpret_cast<void*>(memory));
}

void DeviceAllocator::set_memory_fraction(double fraction) {
  const auto total = static_cast<double>(CudaRuntime::instance().total(device_));
  limit_ = static_cast<std::int64_t>(total * std::clamp(fraction, 0.0, 1.0));
}

const deepum_arena_allocator_statistics& DeviceAllocator::statistics() {
  statistics_.arena_live_bytes = arena_ ? arena_->ranges.live_bytes() : 0;
  return statistics_;
}

void DeviceAllocator::reset_peaks() {
  statistics_.peak_live_bytes = statistics_.live_bytes;
  statistics_.peak_held_bytes = statistics_.held_bytes;
}

void DeviceAllocator::report(void* memory, std::int64_t bytes) const {
  report_block(memory, bytes, static_cast<std::size_t>(statistics_.live_bytes),
               static_cast<std::size_t>(statistics_.held_bytes), device_);
}

}  // namespace deepum::arena_allocator
