// How long the program's streams stand still for our moves, while the daemon wants times: from when
// what was queued before a launch is done to when the launch may run, by the GPU's clock. Gates,
// holds and waits of the host are all in it.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "records.h"
#include "spin_lock.hpp"

namespace deepum::runtime {

class StallClock {
 public:
  // Around what a launch waits for. By the thread that launches, its context current; no launch of
  // the stream by another thread comes between in a program that orders its launches, and if one
  // does, its time is counted here.
  void before(CUstream stream, std::uint32_t id) noexcept;
  void after(CUstream stream, std::uint32_t id, std::uint64_t sequence) noexcept;
  // Microseconds of the launches up to that sequence, which have completed, of all that were timed.
  // By one thread at a time.
  std::uint64_t waited(std::uint32_t id, std::uint64_t completed) noexcept;
  // Whether the stream was ever timed.
  bool knows(std::uint32_t id) const noexcept { return streams_[id].made.load() != 0; }

 private:
  static constexpr std::uint64_t kKept = 1024;  // launches between two looks; others are not timed
  struct Timed {
    CUevent before = nullptr, after = nullptr;
    CUcontext context = nullptr;
    std::uint64_t sequence = 0;
  };
  struct Stream {
    SpinLock lock;
    std::unique_ptr<std::array<Timed, kKept>> timed;
    std::atomic<std::uint64_t> made{0};
    std::uint64_t taken = 0;
    bool open = false;  // `before` of the place that is next was recorded
    double milliseconds = 0;
  };
  static bool prepare(Timed& timed) noexcept;

  std::array<Stream, DEEPUM_MAX_STREAMS> streams_;
};

}  // namespace deepum::runtime
