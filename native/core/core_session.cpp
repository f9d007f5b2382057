// Wiring, events to the parts that take them, and what is learned over all of them.
#include "core_session.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "placement/driver_eviction.hpp"
#include "profile.hpp"
#include "range_parts.hpp"

namespace deepum::core {
namespace {

template <typename T>
const T* as(const deepum_event_header* header) {
  return header->words * std::size_t{8} >= sizeof(T) ? reinterpret_cast<const T*>(header) : nullptr;
}

std::size_t table_bytes(const deepum_core_settings& settings) {
  return std::size_t{settings.table_mebibytes} << 20;
}

// Of the memory for tables, what the history may have.
std::size_t history_bytes(const deepum_core_settings& settings) {
  return table_bytes(settings) / 8;
}

ExecutionTable new_executions(const deepum_core_settings& settings) {
  return {settings.execution_ids, settings.execution_records, table_bytes(settings)};
}

}  // namespace

Core::Core(const deepum_core_settings& settings, const EvictionPolicyFactory& make_order,
           const LaunchPredictorFactory& make_predictor)
    : settings_(settings),
      first_policy_(settings.policy),
      commands_(settings_.parameters.command, now_, statistics_),
      memory_(settings_, now_, statistics_),
      devices_(settings_, now_, statistics_, make_order),
      executions_(new_executions(settings)),
      history_(history_bytes(settings)),
      predictor_(make_predictor(settings_, executions_, history_)),
      chain_(*predictor_, settings_, statistics_),
      iterations_(now_, settings_.parameters.iteration),
      learning_(now_, settings_.parameters.iteration),
      trials_(settings_, now_, statistics_, executions_, memory_),
      growth_(settings_.parameters.growth, now_, statistics_, devices_, chain_, history_),
      departures_(settings_, now_, commands_, devices_),
      room_(settings.pre_eviction != 0
                ? std::make_unique<PreEviction>(settings_, now_, statistics_, departures_, growth_)
                : std::make_unique<DriverEviction>(settings_, now_, statistics_, departures_,
                                                   growth_, commands_)),
      placer_(settings_, now_, statistics_, commands_, memory_, devices_, departures_, growth_,
              *room_),
      chain_planner_(settings_, now_, statistics_, chain_, *predictor_, executions_, memory_,
                     devices_, departures_, growth_, *room_, placer_),
      planner_(now_, statistics_, memory_, devices_, departures_, placer_, copy_back_,
               chain_planner_),
      invalidation_(settings_, now_, statistics_, devices_, departures_),
      copy_back_(settings_, now_, statistics_, commands_, memory_, devices_, executions_,
                 iterations_, trials_),
      uses_(settings_, now_, statistics_, executions_, memory_, copy_back_),
      host_residents_(settings_, now_, statistics_, commands_, memory_, devices_, copy_back_),
      host_groups_(settings_, now_, statistics_, memory_, devices_, departures_, copy_back_,
                   host_residents_),
      recorder_(now_, memory_),
      foretold_(DEEPUM_MAX_DEVICES) {
  room_->set_promises(planner_);
  departures_.add_rule(invalidation_);
  departures_.add_rule(copy_back_);
  placer_.add_rule(copy_back_);
  // What copies and advice do to a block comes before its place in the order changes.
  for (ContentListener* const listener : std::initializer_list<ContentListener*>{
           &recorder_, &growth_, &copy_back_, &host_residents_, &uses_, &invalidation_, this}) {
    memory_.add_listener(*listener);
  }
}

std::uint64_t Core::process(const std::uint8_t* events, std::size_t bytes) {
  std::uint64_t last = 0;
  alignas(8) deepum_event_header header;
  for (std::size_t at = 0; at + sizeof header <= bytes;) {
    std::memcpy(&header, events + at, sizeof header);
    const std::size_t length = std::size_t{header.words} * 8;
    if (length < sizeof header || header.words > DEEPUM_MAX_EVENT_WORDS || at + length > bytes) {
      ++statistics_.malformed_events;
      break;
    }
    ++statistics_.events;
    now_.event = last = header.sequence;
    uses_.set_representative(copy_back_.trial().representative());
    try {
      statistics_.malformed_events +=
          dispatch(reinterpret_cast<const deepum_event_header*>(events + at)) ? 0 : 1;
      // The event is lost to the core, not to the program, which may be waiting for its decisions.
    } catch (const std::bad_alloc&) {
      ++statistics_.malformed_events;
    }
    at += length;
  }
  return last;
}

bool Core::dispatch(const deepum_event_header* header) {
  if (header->device >= DEEPUM_MAX_DEVICES) {
    return false;
  }
  switch (header->kind) {
    case DEEPUM_EVENT_DEVICE:
    case DEEPUM_EVENT_CAPACITY: {
      const auto* event = as<deepum_device_event>(header);
      return event != nullptr && (on_device(*event), true);
    }
    case DEEPUM_EVENT_ALLOCATE: {
      const auto* event = as<deepum_allocate_event>(header);
      return event != nullptr && on_allocate(*event);
    }
    case DEEPUM_EVENT_FREE: {
      const auto* event = as<deepum_free_event>(header);
      return event != nullptr && memory_.release(event->slot, event->generation);
    }
    case DEEPUM_EVENT_BLOCK_ACTIVE:
    case DEEPUM_EVENT_BLOCK_INACTIVE: {
      const auto* event = as<deepum_block_event>(header);
      return event != nullptr &&
             (header->kind == DEEPUM_EVENT_BLOCK_ACTIVE ? memory_.hand_out(*event)
                                                        : memory_.take_back(*event));
    }
    case DEEPUM_EVENT_EXECUTE: {
      const auto* event = as<deepum_execute_event>(header);
      if (event == nullptr) {
        return false;
      }
      const std::size_t count = ranges_of(*event), words = count + event->declared_words;
      if (sizeof *event + words * sizeof(std::uint64_t) > header->words * std::size_t{8} ||
          event->stream >= DEEPUM_MAX_STREAMS) {
        return false;
      }
      return on_launch(*event, {reinterpret_cast<const deepum_block_range*>(event + 1), count});
    }
    case DEEPUM_EVENT_PROGRAM_PREFETCH: {
      const auto* event = as<deepum_program_event>(header);
      return event != nullptr && on_program_prefetch(*event);
    }
    case DEEPUM_EVENT_FAULT: {
      const auto* event = as<deepum_fault_event>(header);
      return event != nullptr && on_fault(*event);
    }
    case DEEPUM_EVENT_PROGRESS: {
      const auto* event = as<deepum_progress_event>(header);
      return event != nullptr && on_progress(*event);
    }
    case DEEPUM_EVENT_WAITED: {
      const auto* event = as<deepum_waited_event>(header);
      return event != nullptr && event->stream < DEEPUM_MAX_STREAMS &&
             (launch_clock_.waited(*event), true);
    }
    case DEEPUM_EVENT_MOVED: {
      const auto* event = as<deepum_moved_event>(header);
      return event != nullptr && (on_moved(*event), true);
    }
    case DEEPUM_EVENT_LOST: {
      const auto* event = as<deepum_lost_event>(header);
      return event != nullptr && (on_lost(*event), true);
    }
    case DEEPUM_EVENT_FREE_MEMORY: {
      const auto* event = as<deepum_free_memory_event>(header);
      return event != nullptr &&
             (devices_[header->device].residency.read_free_memory(*event), true);
    }
    case DEEPUM_EVENT_USAGE: {
      const auto* event = as<deepum_usage_event>(header);
      return event != nullptr && (on_usage(*event), true);
    }
    case DEEPUM_EVENT_SETTING: {
      const auto* event = as<deepum_setting_event>(header);
      return event != nullptr && on_setting(*event);
    }
    case DEEPUM_EVENT_PROGRAM_ADVISE: {
      const auto* event = as<deepum_program_event>(header);
      return event != nullptr && on_program_advise(*event);
    }
    case DEEPUM_EVENT_SYNCHRONISE:
      detector_.waited();
      if (settings_.policy == DEEPUM_POLICY_CORRELATION) {
        planner_.about_to_wait();
      }
      return true;
    default:
      return header->kind == DEEPUM_EVENT_STREAM_DESTROYED;
  }
}

bool Core::wants_faults() const {
  const LaunchIndex unknown = trials_.latest_unknown();
  const bool untried = (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && unknown != 0 &&
                       learning_.lately(unknown);
  return untried || learning_.lost_blocks_lately() || copy_back_.trial().under_way() ||
         host_groups_.under_way() || learning_.learning() || launch_clock_.wanted();
}

bool Core::wants_reads() const {
  return settings_.writes == DEEPUM_WRITES_BY_OPERATORS &&
         (settings_.advice & DEEPUM_ADVISE_DUPLICATE) != 0 && learning_.learning() &&
         devices_.under_pressure();
}

void Core::naming() {
  if (memory_.names_full()) {
    forget_tables();
  }
  executions_.share_with(memory_.names().bytes() + Names::kBytes + history_bytes(settings_));
}

// Learning starts again, with the names of what lives.
void Core::forget_tables() {
  memory_.forget_names();
  uses_.forget();
  trials_.forget();
  executions_ = new_executions(settings_);
  history_ = LaunchHistory(history_bytes(settings_));
  forget_launches();
}

void Core::forget_launches() {
  recorder_.begin(0);
  context_ = {};
  detector_.forget();
  forget_chain();
}

void Core::forget_chain() {
  chain_.forget();
  planner_.forget();
  for (const auto& device : devices_.all()) {
    device->order->prediction_failed();
  }
}

deepum_core_statistics Core::statistics() const {
  deepum_core_statistics s = statistics_;
  s.execution_ids = executions_.size();
  s.iterations = detector_.iterations();
  s.iteration_launches = detector_.period().value_or(0);
  s.allocated_bytes = memory_.allocated_bytes();
  s.table_bytes = executions_.bytes() + memory_.names().bytes() + history_.bytes();
  s.dead_bytes = memory_.dead_bytes();
  s.resident_bytes = s.window_mistakes = s.capacity_bytes = s.capacity_withdrawn_bytes = 0;
  for (const auto& device : devices_.all()) {
    s.capacity_bytes += device->residency.capacity() * kBlockBytes;
    s.capacity_withdrawn_bytes += device->residency.withdrawn() * kBlockBytes;
    s.resident_bytes += device->residency.used() * kBlockBytes;
    s.window_mistakes += device->window.mistakes();
  }
  return s;
}

std::vector<std::uint8_t> Core::save_tables() const {
  std::vector<std::uint64_t> most_blocks;
  for (const auto& device : devices_.in_use()) {
    most_blocks.push_back(device->residency.most_allocated());
  }
  return save_profile(memory_.names(), executions_, history_, most_blocks);
}

bool Core::load_tables(std::span<const std::uint8_t> bytes) {
  return load_profile(bytes, settings_, history_bytes(settings_), memory_.names(), executions_,
                      history_, foretold_);
}

}  // namespace deepum::core
