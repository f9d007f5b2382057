// How far the program's streams are on the GPU, asked at each look for faults: so it is known which
// launches a fault can be of. An event a look, since markers are not kept for as long.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>

#include "marker_table.hpp"
#include "records.h"
#include "stall_clock.hpp"

namespace deepum::runtime {

// One look at a time, by a thread with the program's context current.
class Progress {
 public:
  void begin(MarkerTable& markers);  // what had completed before the faults are taken
  // And what had begun after: PROGRESS events, and before them WAITED ones of streams that are
  // timed.
  void tell(MarkerTable& markers, StallClock& stalls) noexcept;

 private:
  static constexpr std::uint64_t kKept = 64;  // looks: a launch queue and more
  struct Look {
    std::uint64_t sequence = 0;
    CUevent event = nullptr;
    CUcontext context = nullptr;
  };
  struct Stream {
    std::array<Look, kKept> looks;
    std::uint64_t made = 0;
    std::uint64_t completed = 0;
    std::uint64_t completed_at = 0;
  };
  // The latest look behind which all is done, and the earliest one that is not.
  struct Found {
    std::uint64_t completed, begun, completed_at;
  };
  Found find(const Stream& stream, std::uint64_t emitted) noexcept;
  static void create(Look& look) noexcept;  // its event, if there is none
  std::uint64_t time_of(const Look& look) noexcept;

  std::array<std::unique_ptr<Stream>, DEEPUM_MAX_STREAMS> streams_;
  Look first_;  // from which times are counted
};

}  // namespace deepum::runtime
