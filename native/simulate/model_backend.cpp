#include "model_backend.hpp"

#include <algorithm>

namespace deepum::simulate {
namespace {

using um_model::kProgram;

constexpr mover::Error kInvalidValue = 1;

// The model counts events from 0.
mover::EventHandle to_handle(um_model::Event event) { return mover::EventHandle{event} + 1; }
um_model::Event to_event(mover::EventHandle handle) {
  return static_cast<um_model::Event>(handle - 1);
}

std::vector<um_model::Range> to_model(std::span<const mover::Range> ranges) {
  std::vector<um_model::Range> made(ranges.size());
  std::ranges::transform(ranges, made.begin(), [](const mover::Range& range) {
    return um_model::Range{range.address, range.bytes};
  });
  return made;
}

}  // namespace

ModelBackend::ModelBackend(um_model::Engine& engine, um_model::Host host, int devices,
                           um_model::Blocking blocking, Markers& markers, Places& places)
    : engine_(engine),
      host_(host),
      blocking_(blocking),
      markers_(markers),
      places_(places),
      gates_(engine, host),
      lanes_(static_cast<std::size_t>(devices) * DEEPUM_DIRECTIONS),
      discards_(static_cast<std::size_t>(devices)) {}

mover::EventHandle ModelBackend::make_event() { return to_handle(engine_.add_event()); }

bool ModelBackend::record_event(mover::LaneId lane, mover::EventHandle event) {
  engine_.record(host_, to_event(event), *lanes_[lane].stream);
  return true;
}

bool ModelBackend::wait_event(mover::LaneId lane, mover::EventHandle event) {
  engine_.wait(host_, *lanes_[lane].stream, to_event(event));
  return true;
}

bool ModelBackend::completed(mover::EventHandle event) {
  return engine_.completed(to_event(event));
}

bool ModelBackend::cover(std::uint32_t stream, std::uint64_t sequence,
                         std::vector<mover::MarkerRef>* found) {
  Marker marker;
  const Cover cover = markers_[stream].cover(sequence, &marker);
  if (cover == Cover::marker) {
    found->push_back({stream, marker.sequence, to_handle(marker.event)});
  }
  return cover != Cover::not_yet;
}

bool ModelBackend::record_marker(std::uint32_t /*device*/, std::uint32_t stream) {
  return markers_[stream].unmarked() && markers_[stream].record(engine_, host_);
}

std::optional<mover::Range> ModelBackend::pin(const deepum_command& command) {
  const auto range =
      places_.blocks(command.slot, command.generation, command.first_block, command.block_count);
  if (!range) {
    return std::nullopt;
  }
  pinned_.push_back(command.slot);
  return mover::Range{range->address, range->bytes};
}

bool ModelBackend::prepare(mover::LaneId lane) {
  if (!lanes_[lane].stream) {
    lanes_[lane].stream = engine_.add_stream(static_cast<int>(mover::lane_device(lane)));
  }
  return true;
}

bool ModelBackend::defers(const deepum_command& command) const {
  const bool discards = command.kind == DEEPUM_COMMAND_DISCARD;
  return blocking_ <
         (discards ? um_model::Blocking::kPrefetchesAndDiscards : um_model::Blocking::kPrefetches);
}

mover::Error ModelBackend::prefetch(mover::LaneId lane, std::span<const mover::Range> ranges,
                                    std::int32_t location) {
  note_moved(lane);
  engine_.prefetch(host_, *lanes_[lane].stream, to_model(ranges), location);
  return mover::kSuccess;
}

mover::Error ModelBackend::advise_now(mover::LaneId lane, std::span<const mover::Range> ranges,
                                      const AdviceList& advice) {
  note_moved(lane);
  return advise(host_, to_model(ranges), advice);
}

// The driver has no advice in stream order: the server gives it while the stream stands still.
mover::Error ModelBackend::serve_advice(mover::LaneId lane, std::span<const mover::Range> ranges,
                                        const AdviceList& advice) {
  note_moved(lane);
  engine_.serve(host_, *lanes_[lane].stream, [this, spans = to_model(ranges), advice] {
    advise(um_model::kServer, spans, advice);
  });
  return mover::kSuccess;
}

mover::Error ModelBackend::advise(um_model::Host host, std::span<const um_model::Range> ranges,
                                  const AdviceList& advice) {
  for (const Advice& each : advice) {
    if (each.what < 1 || each.what > 6) {
      return kInvalidValue;
    }
    for (const um_model::Range& range : ranges) {
      // CUmem_advise counts from 1.
      engine_.advise(host, {&range, 1}, static_cast<um_model::Advice>(each.what - 1),
                     each.location);
    }
  }
  return mover::kSuccess;
}

mover::Error ModelBackend::discard(mover::LaneId lane, mover::Range range) {
  note_moved(lane);
  const um_model::Range dropped{range.address, range.bytes};
  engine_.discard(host_, *lanes_[lane].stream, {&dropped, 1}, um_model::kCpu, false);
  return mover::kSuccess;
}

bool ModelBackend::commit_discard(mover::LaneId lane, const deepum_command& command,
                                  mover::Range range) {
  return places_.may_discard(command.slot, {range.address, range.bytes}, command.cause) &&
         discards_[mover::lane_device(lane)].propose(range.address, range.bytes, command.id);
}

void ModelBackend::discard_given(mover::LaneId lane, std::uint64_t address, std::uint64_t id,
                                 mover::EventHandle event) noexcept {
  if (discards_[mover::lane_device(lane)].given(address, id, event) && event != 0) {
    last_discard_ = to_event(event);
  }
}

const std::optional<um_model::Stream>& ModelBackend::stream_of(const deepum_command& hold) const {
  return markers_[static_cast<std::size_t>(__builtin_ctzll(hold.stream_mask))].stream();
}

void ModelBackend::hold(const deepum_command& hold, std::size_t /*bringing*/,
                        mover::EventHandle event) {
  engine_.wait(host_, *stream_of(hold), to_event(event));
}

bool ModelBackend::begin_gates(std::uint32_t /*device*/) {
  gates_.begin();
  return true;
}

bool ModelBackend::write_gate(std::uint32_t stream, std::uint32_t /*epoch*/,
                              std::uint64_t sequence) {
  gates_.write(stream, sequence);
  return true;
}

bool ModelBackend::gate_waits(std::uint32_t stream, mover::EventHandle event) {
  gates_.wait(stream, to_event(event));
  return true;
}

// --- Discards, seen from the program

void ModelBackend::use_after_discards(um_model::Range range) {
  for (mover::DiscardMap& discards : discards_) {
    const mover::DiscardMap::Awaited awaited = discards.latest(range.address, range.bytes);
    if (awaited.id == 0) {
      continue;
    }
    for (const StreamMarkers& stream : markers_) {
      if (stream.stream()) {
        engine_.wait(kProgram, *stream.stream(), to_event(awaited.event));
      }
    }
    discards.ordered(awaited.id);
  }
}

void ModelBackend::wait_for_discards(um_model::Range range) {
  for (mover::DiscardMap& discards : discards_) {
    if (const mover::DiscardMap::Awaited awaited = discards.latest(range.address, range.bytes);
        awaited.id != 0) {
      engine_.synchronise(kProgram, to_event(awaited.event));
    }
    discards.forget(range.address, range.bytes);
  }
}

void ModelBackend::follow_discards(um_model::Stream stream) {
  if (last_discard_) {
    engine_.wait(kProgram, stream, *last_discard_);
  }
}

void ModelBackend::wait_for_moves(std::uint32_t slot, std::uint32_t device) {
  for (std::uint32_t direction = 0; device < discards_.size() && direction < DEEPUM_DIRECTIONS;
       ++direction) {
    Lane& lane = lanes_[mover::lane_id(device, direction)];
    if (lane.stream && lane.moved.contains(slot)) {
      engine_.synchronise_stream(kProgram, *lane.stream);
      lane.moved.clear();
    }
  }
}

}  // namespace deepum::simulate
