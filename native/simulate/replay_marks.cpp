// What a replay comes to.
#include <cstring>
#include <limits>

#include "replay.hpp"

namespace deepum::simulate {

void Replay::mark(deepum_simulation_mark_kind kind, double time_ns) {
  deepum_simulation_mark made{};
  made.kind = kind;
  made.launches = launches_;
  made.time_ns = time_ns;
  if (kind == DEEPUM_SIMULATION_SYNCHRONISE) {
    made.counters = counters();
  }
  marks_.push_back(made);
}

double Replay::step_end(std::size_t step) const {
  return step < step_ends_.size() ? engine_.event_time(step_ends_[step].second)
                                  : std::numeric_limits<double>::quiet_NaN();
}

void Replay::finish() {
  for (const um_model::Stream stream : objects_.streams()) {
    engine_.synchronise_stream(um_model::kProgram, stream);
  }
  for (const auto& [index, event] : step_ends_) {
    marks_[index].time_ns = engine_.event_time(event);
  }
}

std::vector<deepum_simulation_launch> Replay::launches() const {
  std::vector<deepum_simulation_launch> made;
  made.reserve(timed_.size());
  for (const Timed& timed : timed_) {
    made.push_back({timed.tag, engine_.event_time(timed.reached), engine_.event_time(timed.ready),
                    engine_.event_time(timed.end), timed.kernel_ns});
  }
  return made;
}

deepum_model_counters Replay::counters() const {
  const um_model::Counters found = engine_.counters(um_model::kCpu);
  deepum_model_counters made;
  static_assert(sizeof made == sizeof found, "the same fields in the same order");
  std::memcpy(&made, &found, sizeof made);
  return made;
}

}  // namespace deepum::simulate
