#include "replay.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "handout_limits.hpp"
#include "range_parts.hpp"

namespace deepum::simulate {
namespace {

using um_model::kProgram;

// Commands taken from the core at a time.
constexpr std::uint32_t kBatch = 256;
constexpr double kNapNs = mover::kHandoutNapNanoseconds + 50e3;  // with what a timer adds

um_model::Machine machine_of(const um_model::Machine& given,
                             const deepum_simulation_options& options) {
  um_model::Machine made = given;
  if (options.mode == DEEPUM_SIMULATION_FREE) {
    made.queued_prefetch_faults = 1;  // nothing holds a kernel until the prefetch has come
  }
  return made;
}

um_model::Options model_options(const deepum_simulation_options& options) {
  um_model::Options made;
  made.devices = options.devices;
  made.memory_bytes = options.memory_bytes;
  made.density_prefetcher = options.density_prefetcher != 0;
  return made;
}

mover::MoverOptions mover_options(const deepum_simulation_options& options) {
  mover::MoverOptions made;
  made.devices = static_cast<std::uint32_t>(options.devices);
  made.lock_step = options.mode == DEEPUM_SIMULATION_LOCK_STEP;
  made.gates = options.gates != 0;
  made.fetches = options.without_prefetch == 0;
  made.handover_bytes = options.handover_bytes;
  return made;
}

template <typename T>
const T* as(std::span<const std::uint8_t> record) {
  return record.size() >= sizeof(T) ? reinterpret_cast<const T*>(record.data()) : nullptr;
}

bool waits(const deepum_work& work) {
  return (work.kind == DEEPUM_WORK_SYNCHRONISE_EVENT ||
          work.kind == DEEPUM_WORK_SYNCHRONISE_STREAM) &&
         (work.flags & DEEPUM_WORK_OF_HELPER) == 0;
}

}  // namespace

Replay::Replay(const um_model::Machine& machine, const deepum_simulation_options& options,
               const deepum_core_settings& settings)
    : machine_(machine_of(machine, options)),
      options_(options),
      engine_(machine_, model_options(options)),
      core_(settings),
      mover_(engine_, mover_options(options),
             options.mode == DEEPUM_SIMULATION_FREE ? machine.blocking_calls
                                                    : um_model::Blocking::kNone,
             markers_, places_),
      mover_thread_(engine_, mover_),
      observing_(options.observe != DEEPUM_SIMULATION_OBSERVE_NOTHING) {
  if (options_.keep_activities != 0) {
    engine_.keep_activities();
  }
  if (machine_.discards == um_model::Discards::kRefused) {
    mover_.backend().refuse_discards();
  }
}

bool Replay::run(std::span<const std::uint8_t> events, std::span<const std::uint8_t> work,
                 std::uint64_t launches, Done* done) {
  std::size_t work_at = 0;
  const auto next_work = [&](std::span<const deepum_work_access>* accesses) -> const deepum_work* {
    if (work.size() - work_at < sizeof(deepum_work)) {
      return nullptr;
    }
    const auto* const record = reinterpret_cast<const deepum_work*>(work.data() + work_at);
    const std::size_t bytes = std::size_t{record->words} * 8;
    if (bytes < sizeof(deepum_work) + std::size_t{record->accesses} * sizeof(deepum_work_access) ||
        bytes > work.size() - work_at) {
      return nullptr;
    }
    *accesses = {reinterpret_cast<const deepum_work_access*>(record + 1), record->accesses};
    return record;
  };
  std::span<const deepum_work_access> accesses;
  if (const std::uint8_t* const end = work.data() + work.size(); end != checked_until_) {
    for (; const deepum_work* const record = next_work(&accesses);
         work_at += std::size_t{record->words} * 8) {
      work_waits_ = work_waits_ || waits(*record);
    }
    if (work_at != work.size()) {
      return false;
    }
    work_at = 0;
    checked_until_ = end;
  }
  const std::uint64_t until = launches > UINT64_MAX - launches_ ? UINT64_MAX : launches_ + launches;
  std::size_t at = 0;
  while (at < events.size()) {
    deepum_event_header header;
    if (events.size() - at < sizeof header) {
      return false;
    }
    std::memcpy(&header, events.data() + at, sizeof header);
    const std::size_t bytes = std::size_t{header.words} * 8;
    if (bytes < sizeof header || header.words > DEEPUM_MAX_EVENT_WORDS ||
        bytes > events.size() - at) {
      return false;
    }
    if (header.kind == DEEPUM_EVENT_EXECUTE && launches_ == until) {
      break;
    }
    catch_up();
    worked_ = false;
    traced_ = header.sequence;
    if (!take(header, events.subspan(at, bytes))) {
      return false;
    }
    for (const deepum_work* record;
         (record = next_work(&accesses)) != nullptr && record->sequence <= header.sequence;) {
      if (!do_work(*record, accesses)) {
        return false;
      }
      work_at += std::size_t{record->words} * 8;
    }
    if (header.kind == DEEPUM_EVENT_SYNCHRONISE) {
      look_for_faults();
      look_at_memory(header.device);
    }
    if (executing_ != nullptr) {
      if (!worked_) {
        default_work(*executing_);
      }
      const deepum_execute_event& event = *executing_;
      StreamMarkers& markers = markers_[event.stream];
      if (!markers.stream()) {
        markers.adopt(stream(kEventStreams + event.stream, event.header.device));
      }
      if (markers.launched(marker_interval(), blocks_of(event))) {
        program_call();
        markers.record(engine_, kProgram);
        marker_recorded();
      }
      look_at_memory_after_launches(event.header.device);
      executing_ = nullptr;
    }
    at += bytes;
  }
  if (done != nullptr) {
    *done = {at, work_at};
  }
  return true;
}

// What became of commands is found anew, and other cards have other capacities. What somebody set
// while the program ran is left out: the policy and the card here are those that are simulated. It
// took no words of the ring, since it was the daemon's. All else goes to the core as it was
// recorded, and with the sequence that it would have had: what is emitted here takes its words of
// the ring (native/runtime/event_ring.cpp).
bool Replay::take(const deepum_event_header& header, std::span<const std::uint8_t> record) {
  if (header.kind == DEEPUM_EVENT_SETTING) {
    return true;
  }
  if (header.device >= static_cast<std::uint32_t>(options_.devices)) {
    return false;
  }
  if (header.kind == DEEPUM_EVENT_MOVED || header.kind == DEEPUM_EVENT_FAULT ||
      header.kind == DEEPUM_EVENT_PROGRESS || header.kind == DEEPUM_EVENT_WAITED ||
      header.kind == DEEPUM_EVENT_FREE_MEMORY) {
    shift_ -= header.words;
    return true;
  }
  if (header.kind == DEEPUM_EVENT_EXECUTE) {
    look_after_launches();
  } else if (header.kind == DEEPUM_EVENT_FREE) {
    look_for_faults();
  }
  record_.resize(header.words);
  std::memcpy(record_.data(), record.data(), record.size());
  auto* const bytes = reinterpret_cast<std::uint8_t*>(record_.data());
  const std::span<const std::uint8_t> copy(bytes, record.size());
  auto* const own = reinterpret_cast<deepum_event_header*>(bytes);
  own->sequence += shift_;
  sequence_ = own->sequence;
  next_sequence_ = sequence_ + header.words;
  switch (header.kind) {
    case DEEPUM_EVENT_DEVICE:
    case DEEPUM_EVENT_CAPACITY:
      if (as<deepum_device_event>(copy) != nullptr && options_.memory_bytes != 0) {
        auto* const event = reinterpret_cast<deepum_device_event*>(bytes);
        const std::uint64_t taken =
            event->total_bytes - std::min(event->total_bytes, event->capacity_bytes);
        event->total_bytes =
            options_.memory_bytes + static_cast<std::uint64_t>(options_.capacity_error);
        event->capacity_bytes = event->total_bytes - std::min(event->total_bytes, taken);
      }
      decide(bytes, record.size());
      return true;
    case DEEPUM_EVENT_ALLOCATE:
      if (const auto* const event = as<deepum_allocate_event>(copy)) {
        allocate(*event);
      }
      return true;
    case DEEPUM_EVENT_FREE:
      if (const auto* const event = as<deepum_free_event>(copy)) {
        release(*event);
      }
      return true;
    case DEEPUM_EVENT_BLOCK_ACTIVE:
    case DEEPUM_EVENT_BLOCK_INACTIVE:
      if (const auto* const event = as<deepum_block_event>(copy);
          event != nullptr && header.kind == DEEPUM_EVENT_BLOCK_ACTIVE) {
        before_handout(event->bytes);
      }
      decide(bytes, record.size());
      if (const auto* const event = as<deepum_block_event>(copy)) {
        if (header.kind == DEEPUM_EVENT_BLOCK_INACTIVE) {
          places_.deactivate(*event);
        } else if (places_.activate(*event); const Place* const place = places_.find(event->slot)) {
          mover_.backend().use_after_discards({place->base + event->offset, event->bytes});
        }
      }
      return true;
    case DEEPUM_EVENT_EXECUTE: {
      const auto* const event = as<deepum_execute_event>(copy);
      const std::size_t words = event == nullptr ? 0 : ranges_of(*event) + event->declared_words;
      if (event == nullptr || event->stream >= DEEPUM_MAX_STREAMS ||
          sizeof *event + words * sizeof(std::uint64_t) > record.size()) {
        return false;
      }
      execute(*event);
      executing_record_ = record_;
      executing_ = reinterpret_cast<const deepum_execute_event*>(executing_record_.data());
      return true;
    }
    case DEEPUM_EVENT_SYNCHRONISE:
      if (const auto* const event = as<deepum_stream_event>(copy)) {
        synchronise(*event);
      }
      return true;
    case DEEPUM_EVENT_STREAM_DESTROYED:
      decide(bytes, record.size());
      if (const auto* const event = as<deepum_stream_event>(copy);
          event != nullptr && event->stream < DEEPUM_MAX_STREAMS - 1) {
        markers_[event->stream].record(engine_, kProgram);
        markers_[event->stream].destroyed();
        marker_recorded();
      }
      return true;
    default:
      decide(bytes, record.size());
      return true;
  }
}

void Replay::decide(const std::uint8_t* record, std::size_t bytes) {
  deepum_core_process(core_.core, record, bytes);
  std::vector<deepum_command> made;
  deepum_command given[kBatch];
  for (std::size_t count; (count = deepum_core_take_commands(core_.core, given, kBatch)) != 0;) {
    if (runs_free()) {
      made.insert(made.end(), given, given + count);
    } else {
      std::for_each_n(given, count,
                      [this](const deepum_command& command) { mover_.accept(command); });
    }
    if (options_.keep_commands != 0) {
      commands_.insert(commands_.end(), given, given + count);
    }
    if (options_.keep_activities != 0) {
      note_decisions({given, count});
    }
  }
  if (runs_free() && (!made.empty() || options_.gates != 0)) {
    mover_thread_.deliver(now() + options_.decision_lag_ns,
                          reinterpret_cast<const deepum_event_header*>(record)->sequence, made);
  }
}

// Only where a launch or a wait stands still for it, as in lock-step.
void Replay::round() {
  if (runs_free() || !mover_.has_work()) {
    return;
  }
  for (const auto& [command, status] : mover_.round()) {
    answer(command, status);
  }
}

void Replay::answer(const deepum_command& command, deepum_moved_status status) {
  deepum_moved_event event = moved_event(command, status, 0);
  emit(event.header);
}

void Replay::catch_up() {
  if (!runs_free()) {
    return;
  }
  engine_.catch_up(kProgram);
  for (const auto& [command, status] : mover_thread_.take_answers()) {
    answer(command, status);
  }
}

void Replay::marker_recorded() {
  if (runs_free()) {
    mover_thread_.marker_recorded(now());
  }
}

// As native/runtime does it (live_session.cpp): the thread that memory is handed out to waits for
// the mover to have looked so far, while the GPU has launches before it.
void Replay::before_handout(std::uint64_t bytes) {
  const bool waits = runs_free() && mover_.gates().used() && bytes >= mover::kAwaitedHandout;
  if (!waits || mover_.gates().processed() < awaited_in_vain_) {
    return;
  }
  catch_up();
  const auto busy = [this] {
    return engine_.launches_outstanding() >= static_cast<int>(mover::kLeastOutstanding);
  };
  for (std::uint32_t naps = 0; !mover_thread_.idle(now()) && busy(); ++naps) {
    if (naps == mover::kMostNaps) {
      awaited_in_vain_ = sequence_;
      break;
    }
    engine_.spend(kProgram, kNapNs);
    catch_up();
  }
}

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

// As the runtime and then the driver do it: discards are waited for, the core is told, the driver
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
    for (const um_model::Stream stream : program_streams_) {
      engine_.synchronise_stream(kProgram, stream);
    }
  }
  mover_.backend().wait_for_moves(event.slot, place->device);
  engine_.unmap(place->base);
  places_.release(event.slot);
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
    if (mover_.gates().used() && markers_[event.stream].record(engine_, kProgram)) {
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
