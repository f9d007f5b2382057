// The program is about to wait for the GPU: the session brings its markers up to date, so that moves go on while it waits.
#pragma once

#include <cstdint>

#include "records.h"
#include "session.hpp"
#include "streams.hpp"

namespace deepum::hooks {

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

}  // namespace deepum::hooks
