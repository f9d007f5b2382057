// Around the program's waits for the GPU.
#pragma once

#include <cstdint>

#include "driver.hpp"
#include "launches.hpp"
#include "memory.hpp"
#include "memory_watch.hpp"
#include "observed_faults.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "session.hpp"
#include "streams.hpp"

namespace deepum::hooks {

// The session brings its markers up to date, so that moves go on while the program waits.
inline void about_to_wait(std::uint32_t stream_id, int device) noexcept {
  if (any_capture()) {
    return;
  }
  deepum_stream_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_SYNCHRONISE;
  event.header.device = device < 0 ? 0 : static_cast<std::uint32_t>(device);
  event.stream = stream_id;
  runtime::emit(&event.header);
  runtime::before_synchronise(stream_id);
}

// The program waited on the device whose context is current: what is done can be freed, and what is
// in use be seen.
inline void waited(int device) noexcept {
  faults_at_rest();
  free_what_is_done();
  if (any_capture()) {
    return;
  }
  const runtime::Driver& driver = runtime::driver();
  runtime::read_free_memory(device);
  if (!runtime::has_budget(device) || !driver.MemGetInfo) {
    return;
  }
  std::size_t free = 0;
  std::size_t total = 0;
  Inside guard;
  if (driver.MemGetInfo(&free, &total) == CUDA_SUCCESS) {
    runtime::saw_free_memory(device, free);
  }
}

}  // namespace deepum::hooks
