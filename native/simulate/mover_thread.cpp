#include "mover_thread.hpp"

#include <algorithm>

#include "poll_intervals.hpp"

namespace deepum::simulate {
namespace {

// From a write to an eventfd to the thread's next step: 5 to 20 us on an idle core.
constexpr double kWakeNs = 10e3;

}  // namespace

void MoverThread::deliver(double time, std::uint64_t decided,
                          std::span<const deepum_command> commands) {
  inbox_.push_back({time + kWakeNs, decided, {commands.begin(), commands.end()}});
  wake_at(inbox_.front().time);
}

void MoverThread::marker_recorded(double time) {
  if (mover_.wants_marker()) {
    wake_at(time + kWakeNs);
  }
}

void MoverThread::wake_at(double time) {
  if (alarm_ != 0 && wakes_at_ <= time) {
    return;
  }
  wakes_at_ = time;
  alarm_ = ++alarms_;
  engine_.at(mover_.host(), time, [this, alarm = alarm_] {
    if (alarm == alarm_) {
      act();
    }
  });
}

void MoverThread::act() {
  alarm_ = 0;
  const double now = engine_.now(mover_.host());
  for (; !inbox_.empty() && inbox_.front().time <= now; inbox_.pop_front()) {
    for (const deepum_command& command : inbox_.front().commands) {
      mover_.accept(command);
    }
    mover_.gates().decided(inbox_.front().decided);
  }
  const Mover::Answers answers = mover_.round();
  answers_.insert(answers_.end(), answers.begin(), answers.end());
  if (!inbox_.empty()) {
    wake_at(inbox_.front().time);
  }
  if (mover_.looks_again_soon()) {
    wake_at(engine_.now(mover_.host()) +
            static_cast<double>(mover_.polls_events() ? mover::kEventPollNanoseconds
                                                      : mover::kHandoverPollNanoseconds));
  }
}

}  // namespace deepum::simulate
