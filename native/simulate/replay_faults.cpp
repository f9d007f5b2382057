// Observed faults, as the program's side tells them in lock-step
// (kernel_hooks/observed_faults.cpp): every so many launches, after waits and before frees, while
// the core wants them.
#include "fault_runs.hpp"
#include "replay.hpp"

namespace deepum::simulate {

void Replay::look_after_launches() {
  if (++launches_since_look_ >= kFaultInterval) {
    look_for_faults();
  }
}

void Replay::look_for_faults() {
  launches_since_look_ = 0;
  if (options_.observe == DEEPUM_SIMULATION_OBSERVE_NOTHING) {
    return;
  }
  const bool wanted = deepum_core_wants_faults(core_.core) != 0;
  if (!observing_ && !wanted) {
    return;
  }
  engine_.catch_up(um_model::kProgram);
  const std::vector<um_model::Fault> faults = engine_.take_faults();
  if (observing_) {
    tell_progress();
    if (options_.observe == DEEPUM_SIMULATION_OBSERVE_FAULTS) {
      tell_faults(faults);
    }
  }
  observing_ = wanted;
}

void Replay::tell_faults(const std::vector<um_model::Fault>& faults) {
  std::vector<FaultPlace> places;
  for (const um_model::Fault& fault : faults) {
    if (const auto block = places_.block_at(fault.address)) {
      const std::uint8_t access = fault.write ? DEEPUM_FAULT_WRITE : DEEPUM_FAULT_READ;
      places.push_back({static_cast<std::uint32_t>(fault.device), block->slot, block->index,
                        fault.faults, access});
    }
  }
  deepum::tell_faults(places, [this](deepum_fault_event& event) { emit(event.header); });
}

void Replay::tell_progress() {
  for (std::uint32_t id = 0; id + 1 < DEEPUM_MAX_STREAMS; ++id) {
    const StreamMarkers::Progress progress = markers_[id].progress(engine_, first_look_);
    if (!progress.known) {
      continue;
    }
    tell_waited(id, progress.completed);
    deepum_progress_event event{};
    event.header.words = sizeof event / 8;
    event.header.kind = DEEPUM_EVENT_PROGRESS;
    event.stream = id;
    event.completed = progress.completed;
    event.begun = progress.begun;
    event.completed_at = progress.completed_at;
    emit(event.header);
  }
}

bool Replay::times_launches() const {
  const bool waits = !runs_free() || options_.gates != 0;
  return waits && options_.observe != DEEPUM_SIMULATION_OBSERVE_NOTHING &&
         deepum_core_wants_times(core_.core) != 0;
}

void Replay::tell_waited(std::uint32_t stream, std::uint64_t completed) {
  const bool any =
      std::erase_if(stalls_, [&](const Stall& stall) {
        const bool done = stall.stream == stream && stall.sequence <= completed;
        waited_ns_[stream] +=
            done ? engine_.event_time(stall.ready) - engine_.event_time(stall.reached) : 0;
        return done;
      }) != 0;
  if (!any) {
    return;
  }
  deepum_waited_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_WAITED;
  event.stream = stream;
  event.completed = completed;
  event.waited = static_cast<std::uint64_t>(waited_ns_[stream] * 1e-3);
  emit(event.header);
}

}  // namespace deepum::simulate
