// Discards under way: from the mover's commitment to their completion on the GPU. Whoever may use
// the memory again comes here first.
//
// A discard is committed under the lock of the allocations' map, where all of its memory is
// inactive; PyTorch's report that memory is active again takes the same lock. So either the report
// comes first and the discard is refused, or it comes after and finds it here: then the program's
// streams wait for the discard, before anything that uses the memory can be launched.
//
// Each device has a lane of discards, a stream of its own in the mover's context on that device.
// Discards of a lane are done in the order of their ids; those of different lanes have no order.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "discard_map.hpp"
#include "records.h"

namespace deepum::runtime {

class Discards {
 public:
  static Discards& instance() noexcept;

  // The mover's side. Under the allocations' lock: false when there may be no more of them.
  bool propose(std::size_t device, CUcontext context, std::uint64_t address, std::uint64_t bytes,
               std::uint64_t id) noexcept;
  // The driver has it, and the event lies behind it; null: it was not given to the driver. Follows
  // each proposal that was taken, whatever comes in between: there are threads that wait for it.
  void committed(std::size_t device, std::uint64_t address, std::uint64_t id,
                 CUevent event) noexcept;

  // The latest discard of a lane, of those asked for. Whoever waits for it has waited for the
  // lane's earlier ones.
  struct Awaited {
    std::uint64_t id = 0;  // 0: nothing to wait for
    CUevent event = nullptr;
    CUcontext context = nullptr;  // of the event
  };
  using AwaitedOfLanes = std::array<Awaited, DEEPUM_MAX_DEVICES>;  // by device
  // Of those that touch the memory and that not all of the program's streams wait for. Waits
  // (microseconds, mostly) until the mover has given them to the driver.
  AwaitedOfLanes latest(std::uint64_t address, std::uint64_t bytes) noexcept;
  AwaitedOfLanes latest() noexcept;
  // All of the program's streams wait for it by now, and so for the earlier ones of its lane.
  void ordered(std::size_t device, std::uint64_t id) noexcept;
  void forget(std::uint64_t address, std::uint64_t bytes) noexcept;  // the memory ends

  // A context is about to end: no more discards in it from here on. The latest one of each lane
  // that has its events there, given to the driver by now.
  AwaitedOfLanes close_context(CUcontext context) noexcept;
  void reopen_context(CUcontext context) noexcept;  // it did not end
  void forget_context(CUcontext context) noexcept;  // it has ended, and its events with it

  // After fork: a child waits for none. Another thread may have held the lock and stopped halfway:
  // all of it begins anew.
  void abandon_in_child() noexcept;

  // From here on there are none: a graph's launches use memory that looks inactive, and a stream
  // that waits for a value may wait for another that would wait for a discard. The latest ones; all
  // that were proposed have been given to the driver by now.
  AwaitedOfLanes forbid() noexcept;
  bool forbidden() const noexcept { return forbidden_.load(); }
  // At the program's end: what the mover has not given to the driver by now is waited for no
  // longer.
  void end() noexcept { ended_.store(true); }

 private:
  struct Lane {
    mover::DiscardMap entries;
    CUcontext context = nullptr;  // in which the mover has its stream and events
    Awaited last;
    bool closed = false;  // the context is about to end
    std::uint64_t proposed = 0;
    // Id of the latest one that was given to the driver, or given up.
    std::atomic<std::uint64_t> given{0};
    Awaited latest(std::uint64_t address, std::uint64_t bytes) const noexcept;
  };
  void wait_given(const Lane& lane, std::uint64_t id) const noexcept;

  std::mutex mutex_;
  std::array<Lane, DEEPUM_MAX_DEVICES> lanes_;
  std::atomic<bool> forbidden_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace deepum::runtime
