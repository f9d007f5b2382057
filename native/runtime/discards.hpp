// Discards under way: from the mover's commitment to their completion on the GPU. Whoever may use the memory again comes here first.
//
// A discard is committed under the lock of the allocations' map, where all of its memory is inactive; PyTorch's report that memory is
// active again takes the same lock. So either the report comes first and the discard is refused, or it comes after and finds it here:
// then the program's streams wait for the discard, before anything that uses the memory can be launched.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace deepum::runtime {

class Discards {
 public:
  static Discards& instance() noexcept;

  // The mover's side. Under the allocations' lock: false when there may be no more of them.
  bool propose(std::uint64_t address, std::uint64_t bytes, std::uint64_t id) noexcept;
  // The driver has it, and the event lies behind it; null: it was not given to the driver. Follows each proposal that was taken, whatever
  // comes in between: there are threads that wait for it.
  void committed(std::uint64_t address, std::uint64_t id, CUevent event) noexcept;

  struct Awaited {
    std::uint64_t id = 0;  // 0: nothing to wait for
    CUevent event = nullptr;
  };
  // The latest one that touches the memory. Waits (microseconds, mostly) until the mover has given it to the driver.
  Awaited latest(std::uint64_t address, std::uint64_t bytes) noexcept;
  Awaited latest() noexcept;
  // All of the program's streams wait for it by now: for earlier ones too, since they go in order.
  void ordered(std::uint64_t id) noexcept;
  void forget(std::uint64_t address, std::uint64_t bytes) noexcept;  // the memory ends
  void forget_all() noexcept;                                        // a context ends, and its events
  // After fork: a child waits for none. Another thread may have held the lock and stopped halfway: all of it begins anew.
  void abandon_in_child() noexcept;

  // From here on there are none: a graph's launches use memory that looks inactive, and a stream that waits for a value may wait for
  // another that would wait for a discard. The latest one; all that were proposed have been given to the driver by now.
  Awaited forbid() noexcept;
  // At the program's end: what the mover has not given to the driver by now is waited for no longer.
  void end() noexcept { ended_.store(true); }

 private:
  struct Entry {
    std::uint64_t end;
    std::uint64_t id;
    CUevent event;
    bool given;
  };
  void wait_given(std::uint64_t id) const noexcept;

  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;  // by address, not overlapping
  Awaited last_;
  std::uint64_t ordered_ = 0, proposed_ = 0;
  std::atomic<std::uint64_t> given_{0};  // id of the latest one that was given to the driver, or given up
  bool forbidden_ = false;
  std::atomic<bool> ended_{false};
};

}  // namespace deepum::runtime
