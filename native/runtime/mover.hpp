// Carries commands out: one stream a direction and device, behind the program's markers and the other direction's moves
// (native/wire/records.h says when a command may start). Used by one thread; session.cpp owns that thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "records.h"

namespace deepum::runtime {

class Mover {
 public:
  // The context in which a device's moves are made: the first the program used there.
  void set_context(CUdevice device, CUcontext context) noexcept;

  void accept(const deepum_command& command);
  // Hands everything over that can be now. True: something is left that a new marker, or time, may allow.
  bool issue() noexcept;
  bool waits_for_marker() const noexcept { return waits_for_marker_.load(std::memory_order_relaxed); }
  bool failed() const noexcept { return failed_; }
  void clear() noexcept;  // forgets what was not handed over

 private:
  struct Done {  // an event behind a command, on its direction's stream
    std::uint64_t id = 0;
    std::uint64_t bytes = 0;
    CUevent event = nullptr;
  };
  struct Direction {
    CUstream stream = nullptr;
    std::deque<deepum_command> waiting;
    std::deque<Done> done;         // rising ids; the last kKept of them
    std::deque<Done> outstanding;  // not yet seen complete, when handover is limited
    std::uint64_t outstanding_bytes = 0;
    std::uint64_t waited_for_launch[DEEPUM_MAX_STREAMS] = {};
    std::uint64_t waited_for_move = 0;
  };
  struct Device {
    CUcontext context = nullptr;
    bool ready = false;
    Direction directions[2];
  };
  enum class Step { issued, later };

  static constexpr std::size_t kKept = 1024;

  bool prepare(CUdevice ordinal, Device& device) noexcept;
  bool may_hand_over(Direction& direction) noexcept;
  Step try_issue(CUdevice ordinal, Device& device, int direction) noexcept;
  bool wait_for_launches(Direction& direction, const deepum_command& command) noexcept;
  CUresult move(CUdevice ordinal, const deepum_command& command, CUstream stream, std::uint64_t* bytes, bool* stale) noexcept;
  void note_done(Direction& direction, std::uint64_t id, std::uint64_t bytes) noexcept;
  void report(const deepum_command& command, deepum_moved_status status, CUresult error) noexcept;

  Device devices_[DEEPUM_MAX_DEVICES];
  std::atomic<bool> waits_for_marker_{false};
  bool relaxed_ = false;
  bool failed_ = false;
  unsigned failures_ = 0;
};

}  // namespace deepum::runtime
