// Lock-step (DEEPUM_SYNC): a launch waits for its decisions, and for the mover to have done what
// can be done now.
//
// The launching thread looks for a few microseconds and then sleeps on `bell_`, which the mover
// rings: the mover alone reads the eventfd that the daemon writes. Rounds are counted, so that a
// launch knows one that began after its decisions were written.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared_memory.hpp"

namespace deepum::runtime {

class LockStep {
 public:
  enum class Answer { kDone, kDaemonSilent, kMoverSilent, kStopped };

  void use(const SharedMemory& memory) noexcept { memory_ = memory; }

  // The program's side. `mover_has_work`: asked once the decisions are there.
  template <typename F>
  Answer wait(std::uint64_t sequence, F mover_has_work) noexcept {
    Answer answer = wait_for_decision(sequence);
    if (answer != Answer::kDone || goes_on(sequence)) {
      return answer;
    }
    answer = wait_for_quiet(sequence);
    if (answer == Answer::kDone && mover_has_work()) {
      answer = wait_for_round();
    }
    if (answer == Answer::kMoverSilent) {
      late_.store(true, std::memory_order_relaxed);
    }
    return answer;
  }

  // The mover's side, after every wake-up. True: somebody waits for a round; then it carries out
  // what can be.
  bool begin_round() noexcept;
  void end_round(bool was_due) noexcept;
  void stop() noexcept;  // lets everyone go, for good

 private:
  Answer wait_for_decision(std::uint64_t sequence) noexcept;
  bool goes_on(std::uint64_t sequence) noexcept;
  Answer wait_for_quiet(std::uint64_t sequence) noexcept;
  Answer wait_for_round() noexcept;
  template <typename F>
  Answer sleep_until(F true_now) noexcept;
  std::uint64_t sleep(std::uint32_t bell, std::uint64_t most) noexcept;  // ns; how long
  void ring() noexcept;
  std::uint64_t decided() const noexcept {
    return __atomic_load_n(&memory_.control->decided_sequence, __ATOMIC_SEQ_CST);
  }

  SharedMemory memory_;
  std::atomic<std::uint32_t> bell_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  // The decision that somebody sleeps for: a round follows it without being asked for.
  std::atomic<std::uint64_t> wanted_{0};
  std::atomic<bool> active_{false};  // the mover may be in a round
  std::atomic<bool> requested_{false};
  std::atomic<bool> stopped_{false};
  // Somebody has waited in vain for a round, which may be under way still.
  std::atomic<bool> late_{false};
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace deepum::runtime
