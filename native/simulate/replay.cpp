#include "replay.hpp"

#include <algorithm>
#include <cstring>

#include "range_parts.hpp"
#include "work_reader.hpp"

namespace deepum::simulate {
namespace {

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
T* as(std::span<std::uint8_t> record) {
  return record.size() >= sizeof(T) ? reinterpret_cast<T*>(record.data()) : nullptr;
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
      observing_(options.observe != DEEPUM_SIMULATION_OBSERVE_NOTHING),
      objects_(engine_) {
  if (options_.keep_activities != 0) {
    engine_.keep_activities();
  }
  if (machine_.discards == um_model::Discards::kRefused) {
    mover_.backend().refuse_discards();
  }
}

// Also finds out whether it has waits of its own. Once for each buffer, which may be run in parts.
bool Replay::check_work(std::span<const std::uint8_t> work) {
  const std::uint8_t* const end = work.data() + work.size();
  if (end == checked_until_) {
    return true;
  }
  WorkReader reader(work);
  for (; const deepum_work* const record = reader.record(); reader.next()) {
    work_waits_ = work_waits_ || waits(*record);
  }
  checked_until_ = reader.at_end() ? end : checked_until_;
  return reader.at_end();
}

bool Replay::run(std::span<const std::uint8_t> events, std::span<const std::uint8_t> work,
                 std::uint64_t launches, Done* done) {
  if (!check_work(work)) {
    return false;
  }
  WorkReader reader(work);
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
         (record = reader.record()) != nullptr && record->sequence <= header.sequence;
         reader.next()) {
      if (!do_work(*record, WorkReader::accesses(*record))) {
        return false;
      }
    }
    if (header.kind == DEEPUM_EVENT_SYNCHRONISE) {
      look_for_faults();
      look_at_memory(header.device);
    }
    if (executing_ != nullptr) {
      end_launch();
    }
    at += bytes;
  }
  if (done != nullptr) {
    *done = {at, reader.done()};
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
  const std::span<std::uint8_t> copy(bytes, record.size());
  auto* const own = reinterpret_cast<deepum_event_header*>(bytes);
  own->sequence += shift_;
  sequence_ = own->sequence;
  next_sequence_ = sequence_ + header.words;
  return give(copy);
}

// False: malformed.
bool Replay::give(std::span<std::uint8_t> copy) {
  const auto kind = reinterpret_cast<const deepum_event_header*>(copy.data())->kind;
  switch (kind) {
    case DEEPUM_EVENT_DEVICE:
    case DEEPUM_EVENT_CAPACITY:
      if (auto* const event = as<deepum_device_event>(copy);
          event != nullptr && options_.memory_bytes != 0) {
        change_card(*event);
      }
      decide(copy.data(), copy.size());
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
      if (const auto* const event = as<deepum_block_event>(copy)) {
        block(*event);
      } else {
        decide(copy.data(), copy.size());
      }
      return true;
    case DEEPUM_EVENT_EXECUTE: {
      const auto* const event = as<deepum_execute_event>(copy);
      const std::size_t words = event == nullptr ? 0 : ranges_of(*event) + event->declared_words;
      if (event == nullptr || event->stream >= DEEPUM_MAX_STREAMS ||
          sizeof *event + words * sizeof(std::uint64_t) > copy.size()) {
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
      decide(copy.data(), copy.size());
      if (const auto* const event = as<deepum_stream_event>(copy)) {
        stream_destroyed(*event);
      }
      return true;
    default:
      decide(copy.data(), copy.size());
      return true;
  }
}

// To the one that is simulated; what was taken of it is taken of that.
void Replay::change_card(deepum_device_event& event) const {
  const std::uint64_t taken = event.total_bytes - std::min(event.total_bytes, event.capacity_bytes);
  event.total_bytes = options_.memory_bytes + static_cast<std::uint64_t>(options_.capacity_error);
  event.capacity_bytes = event.total_bytes - std::min(event.total_bytes, taken);
}

}  // namespace deepum::simulate
