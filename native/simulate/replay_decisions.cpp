// What the core decides about an event, and when the mover has carried it out.
#include <algorithm>

#include "handout_limits.hpp"
#include "replay.hpp"

namespace deepum::simulate {
namespace {

using um_model::kProgram;

// Commands taken from the core at a time.
constexpr std::uint32_t kBatch = 256;
constexpr double kNapNs = mover::kHandoutNapNanoseconds + 50e3;  // with what a timer adds

}  // namespace

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
  const bool waits = runs_free() && mover_.gates().wanted() && bytes >= mover::kAwaitedHandout;
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

// An event that the trace does not have: those that follow come later by its length.
void Replay::emit(deepum_event_header& header) {
  header.sequence = next_sequence_;
  next_sequence_ += header.words;
  shift_ += header.words;
  decide(reinterpret_cast<const std::uint8_t*>(&header), std::size_t{header.words} * 8);
}

}  // namespace deepum::simulate
