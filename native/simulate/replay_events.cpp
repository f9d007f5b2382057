// What each event of the trace does to the machine, as the runtime and the driver do it.
#include "range_parts.hpp"
#include "replay.hpp"

namespace deepum::simulate {

using um_model::kProgram;

void Replay::allocate(const deepum_allocate_event& event) {
  if (const Place* const before = places_.find(event.slot)) {  // announced once more
    if (before->generation == event.generation && before->bytes == event.bytes) {
      decide(reinterpret_cast<const std::uint8_t*>(&event), sizeof event);
      return;
    }
    engine_.unmap(before->base);
  }
  if (const Place* const place = places_.allocate(event)) {
    engine_.map_managed({place->base, place->bytes}, static_cast<int>(event.header.device));
  }
  decide(reinterpret_cast<const std::uint8_t*>(&event), sizeof event);
  look_at_memory(event.header.device);
}

// Discards are waited for, the core is told, the driver
// waits for all that was launched and for moves of the memory.
void Replay::release(const deepum_free_event& event) {
  const Place* const place = places_.find(event.slot);
  const bool known = place != nullptr && place->generation == event.generation;
  if (known) {
    mover_.backend().wait_for_discards({place->base, place->bytes});
  }
  decide(reinterpret_cast<const std::uint8_t*>(&event), sizeof event);
  if (!known) {
    return;
  }
  program_call();
  if (!work_waits_) {
    for (const um_model::Stream stream : objects_.streams()) {
      engine_.synchronise_stream(kProgram, stream);
    }
  }
  mover_.backend().wait_for_moves(event.slot, place->device);
  engine_.unmap(place->base);
  places_.release(event.slot);
}

void Replay::block(const deepum_block_event& event) {
  const bool active = event.header.kind == DEEPUM_EVENT_BLOCK_ACTIVE;
  if (active) {
    before_handout(event.bytes);
  }
  decide(reinterpret_cast<const std::uint8_t*>(&event), std::size_t{event.header.words} * 8);
  if (!active) {
    places_.deactivate(event);
    return;
  }
  places_.activate(event);
  if (const Place* const place = places_.find(event.slot)) {
    mover_.backend().use_after_discards({place->base + event.offset, event.bytes});
  }
}

void Replay::execute(const deepum_execute_event& event) {
  ++launches_;
  reached_.reset();
  if ((watches() || times_launches()) && markers_[event.stream].stream()) {
    reached_ = engine_.add_event();
    engine_.record(kProgram, *reached_, *markers_[event.stream].stream());
  }
  markers_[event.stream].reserve(event.header.sequence);
  decide(reinterpret_cast<const std::uint8_t*>(&event), std::size_t{event.header.words} * 8);
  if (runs_free() && options_.gates != 0) {
    if (mover_.gates().wanted() && markers_[event.stream].record(engine_, kProgram)) {
      // Launches that had no gate must not be covered by a marker that lies behind one.
      marker_recorded();
    }
    mover_.gates().launch(markers_[event.stream].stream(), event.stream, event.header.sequence);
  }
  round();
  if ((event.header.flags & DEEPUM_EXECUTE_GRAPH) != 0) {
    mover_.backend().forbid_discards();
  }
}

// Marked every so many launches; one without work of its own has what its ranges tell.
void Replay::end_launch() {
  if (!worked_) {
    default_work(*executing_);
  }
  const deepum_execute_event& event = *executing_;
  StreamMarkers& markers = markers_[event.stream];
  if (!markers.stream()) {
    markers.adopt(objects_.stream(kEventStreams + event.stream, event.header.device));
  }
  if (markers.launched(marker_interval(), blocks_of(event))) {
    program_call();
    markers.record(engine_, kProgram);
    marker_recorded();
  }
  look_at_memory_after_launches(event.header.device);
  executing_ = nullptr;
}

void Replay::stream_destroyed(const deepum_stream_event& event) {
  if (event.stream >= DEEPUM_MAX_STREAMS - 1) {
    return;
  }
  markers_[event.stream].record(engine_, kProgram);
  markers_[event.stream].destroyed();
  marker_recorded();
}

void Replay::synchronise(const deepum_stream_event& event) {
  decide(reinterpret_cast<const std::uint8_t*>(&event), sizeof event);
  program_call();
  for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
    if ((event.stream == DEEPUM_ALL_STREAMS || event.stream == id) && markers_[id].unmarked()) {
      markers_[id].record(engine_, kProgram);
      marker_recorded();
    }
  }
  round();
  if (work_waits_) {
    return;
  }
  program_call();
  for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
    if ((event.stream == DEEPUM_ALL_STREAMS || event.stream == id) && markers_[id].stream()) {
      engine_.synchronise_stream(kProgram, *markers_[id].stream());
    }
  }
  mark(DEEPUM_SIMULATION_SYNCHRONISE, now());
}

}  // namespace deepum::simulate
