// The memory of one device: plans are followed where there are any, the pool serves the rest.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arena_allocator.h"
#include "arena_memory.hpp"
#include "follower.hpp"
#include "plan.hpp"
#include "pool.hpp"
#include "recorder.hpp"

namespace deepum::arena_allocator {

struct Settings {
  double seconds = 1.0;       // a plan may take
  bool in_background = true;  // is it looked for
};

// Not for several threads at a time.
class DeviceAllocator : private DriverMemory {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  // nullptr: memory is short.
  void* allocate(std::size_t bytes, cudaStream_t stream, const Settings& settings);
  // False: it was not handed out here.
  bool free(void* memory);
  bool record_stream(void* memory, cudaStream_t stream);
  void reset();
  void set_memory_fraction(double fraction);
  const deepum_arena_allocator_statistics& statistics();
  void reset_peaks();

 private:
  struct Arena {
    Address memory;
    const void* stream;
    ArenaMemory ranges;
  };
  struct Block {
    std::int64_t bytes;
    std::uint64_t number;               // of its request
    bool of_arena;                      // else of the pool
    std::vector<cudaStream_t> streams;  // others that it is used on
  };
  // Freed, but not handed out again before these are done.
  struct Pending {
    Address memory;
    bool of_arena;
    std::vector<cudaEvent_t> events;
  };

  Address obtain(std::int64_t bytes) override;
  void release(Address memory, std::int64_t bytes) override;
  std::int64_t held_bytes() const override { return statistics_.held_bytes; }

  void look_for_plans(std::optional<Follower::Place> place, const Settings& settings);
  void begin_iteration(const Plan& plan);
  bool follows(const Plan& plan) const {  // as far as the arena reaches
    return arena_ && arena_->stream == plan.stream;
  }
  Address take(std::int64_t bytes, cudaStream_t stream, std::optional<Follower::Place> place);
  Address take_planned(std::int64_t bytes, const Follower::Place& place);
  Address take_pooled(std::int64_t bytes, cudaStream_t stream);
  Address take_from_arena(std::int64_t bytes, const void* stream);
  void give_back(Address memory, bool of_arena);
  bool finish_pending(bool wait);
  bool release_arena();
  void report(void* memory, std::int64_t bytes) const;

  const int device_;
  Pool pool_{*this};
  std::optional<Arena> arena_;
  std::unordered_map<void*, Block> blocks_;
  std::vector<Pending> pending_;
  Recorder recorder_;
  Follower follower_;
  PlanMaker maker_;
  std::uint64_t planned_at_ = 0;  // count of requests of the iteration that is being planned
  int tries_ = 0;                 // to have an arena of the driver, that are left
  int clean_ = 0;                 // iterations at whose begin what is free is given back
  std::int64_t limit_ = 0;        // bytes that may be held; 0: what the driver has
  deepum_arena_allocator_statistics statistics_{};
};

}  // namespace deepum::arena_allocator
