// What is free of a device, as the program's side tells it in lock-step
// (native/runtime/free_memory.cpp): at allocations, every so many launches and after
// waits, while the core wants to know.
#include <algorithm>

#include "marker_limits.hpp"
#include "reading_limits.hpp"
#include "replay.hpp"

namespace deepum::simulate {

bool Replay::reads_memory() const {
  return options_.without_free_memory == 0 && deepum_core_wants_free_memory(core_.core) != 0;
}

std::uint32_t Replay::marker_interval() const {
  if (mover_.gates().wanted()) {
    return 1;  // what a gate waits for may wait for any launch before it
  }
  const auto usual = static_cast<std::uint32_t>(options_.marker_interval);
  return reads_memory() ? std::min(usual, mover::kMarkerIntervalOfReadings) : usual;
}

void Replay::look_at_memory_after_launches(std::uint32_t device) {
  if (reads_memory() && ++launches_since_reading_ >= mover::kReadingInterval) {
    look_at_memory(device);
  }
}

void Replay::look_at_memory(std::uint32_t device) {
  if (!reads_memory()) {
    return;
  }
  launches_since_reading_ = 0;
  engine_.catch_up(um_model::kProgram);
  deepum_free_memory_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_FREE_MEMORY;
  event.header.device = device;
  event.free_bytes = engine_.free_bytes(static_cast<int>(device));
  event.completed = UINT64_MAX;
  for (const StreamMarkers& markers : markers_) {
    const StreamMarkers::Reached reached = markers.reached(engine_);
    event.completed = std::min(event.completed, reached.completed);
    event.begun = std::max(event.begun, reached.begun);
  }
  emit(event.header);
}

}  // namespace deepum::simulate
