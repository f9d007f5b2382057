#include "lock_step.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

#include "shim_settings.hpp"
#include "spin_lock.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint64_t kSpinNanoseconds = 20000;
constexpr std::uint64_t kSecond = 1000000000;  // ns
// While the mover is in a long call and rings for nobody.
constexpr std::uint64_t kLateNap = 100000;
constexpr std::uint64_t kMostMoving = 10 * kSecond;

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

template <typename F>
bool spin_until(F true_now) noexcept {
  for (int i = 0; i < 32; ++i) {
    if (true_now()) {
      return true;
    }
    relax();
  }
  const std::uint64_t until = now_ns() + kSpinNanoseconds;
  do {
    for (int i = 0; i < 32; ++i) {
      if (true_now()) {
        return true;
      }
      relax();
    }
  } while (now_ns() < until);
  return false;
}

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word),
                   operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

}  // namespace

// No sleep counts for more than it was to take: a program that was stopped for a while has not
// waited. One that was cut short counts, too, since the mover may ring for other reasons, again and
// again.
std::uint64_t LockStep::sleep(std::uint32_t bell, std::uint64_t most) noexcept {
  const int kept = errno;
  const timespec limit{static_cast<time_t>(most / kSecond), static_cast<long>(most % kSecond)};
  const std::uint64_t began = now_ns();
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex(&bell_, FUTEX_WAIT, bell, &limit);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  errno = kept;
  return std::min(now_ns() - began, most);
}

void LockStep::ring() noexcept {
  bell_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    futex(&bell_, FUTEX_WAKE, INT_MAX, nullptr);
  }
}

LockStep::Answer LockStep::wait_for_decision(std::uint64_t sequence) noexcept {
  if (spin_until(
          [&] { return decided() >= sequence || stopped_.load(std::memory_order_relaxed); })) {
    return stopped_.load() ? Answer::kStopped : Answer::kDone;
  }
  std::uint64_t last = 0;
  for (std::uint64_t silent = 0; silent < settings().daemon_silence * kSecond;) {
    const std::uint32_t bell = bell_.load(std::memory_order_seq_cst);
    if (stopped_.load()) {
      return Answer::kStopped;
    }
    std::uint64_t wanted = wanted_.load();
    while (wanted < sequence && !wanted_.compare_exchange_weak(wanted, sequence)) {
      continue;
    }
    __atomic_store_n(&memory_.control->mover_sleeps, 1u, __ATOMIC_SEQ_CST);
    const std::uint64_t now = decided();
    if (now >= sequence) {
      return Answer::kDone;
    }
    silent = now == last ? silent : 0;
    last = now;
    silent += sleep(bell, late_.load(std::memory_order_relaxed) ? kLateNap : kSecond);
  }
  return Answer::kDaemonSilent;
}

// What was true once is the answer: by the time that one looks again, the mover may be in another
// thread's round.
template <typename F>
LockStep::Answer LockStep::sleep_until(F true_now) noexcept {
  bool was_true = false;
  const auto over = [&] {
    was_true = true_now();
    return was_true || stopped_.load(std::memory_order_relaxed);
  };
  if (!spin_until(over)) {
    for (std::uint64_t silent = 0; silent < kMostMoving;) {
      const std::uint32_t bell = bell_.load(std::memory_order_seq_cst);
      if (over()) {
        break;
      }
      silent += sleep(bell, kSecond);
    }
  }
  if (stopped_.load()) {
    return Answer::kStopped;
  }
  return was_true ? Answer::kDone : Answer::kMoverSilent;
}

// No round may run on while the program does: what it finds would depend on who is faster. So the
// wish for one is taken back, and one that is under way is waited for. The mover marks itself
// active before it looks for wishes: one of the two sees the other.
LockStep::Answer LockStep::wait_for_quiet(std::uint64_t sequence) noexcept {
  wanted_.compare_exchange_strong(sequence, 0, std::memory_order_seq_cst);
  if (!active_.load(std::memory_order_seq_cst)) {
    [[likely]] return Answer::kDone;
  }
  return sleep_until([this] { return !active_.load(std::memory_order_seq_cst); });
}

// A round that was waited for in vain is not waited for again: what is launched meanwhile goes on
// as outside lock-step.
bool LockStep::goes_on(std::uint64_t sequence) noexcept {
  if (!late_.load(std::memory_order_relaxed)) {
    [[likely]] return false;
  }
  if (!active_.load(std::memory_order_seq_cst)) {
    late_.store(false, std::memory_order_relaxed);
    return false;
  }
  wanted_.compare_exchange_strong(sequence, 0, std::memory_order_seq_cst);
  return true;
}

LockStep::Answer LockStep::wait_for_round() noexcept {
  const std::uint64_t needed = begun_.load(std::memory_order_seq_cst) + 1;
  requested_.store(true, std::memory_order_seq_cst);
  ring_eventfd(memory_.mover_fd);
  return sleep_until([&] { return done_.load(std::memory_order_acquire) >= needed; });
}

bool LockStep::begin_round() noexcept {
  active_.store(true, std::memory_order_seq_cst);
  bool due = requested_.exchange(false, std::memory_order_seq_cst);
  std::uint64_t wanted = wanted_.load(std::memory_order_seq_cst);
  if (wanted != 0 && decided() >= wanted) {
    due |= wanted_.compare_exchange_strong(wanted, 0, std::memory_order_seq_cst);
  }
  if (due) {
    begun_.fetch_add(1, std::memory_order_seq_cst);
  }
  return due;
}

// Everyone who sleeps looks again, each time: only then will the daemon wake the mover once more.
void LockStep::end_round(bool was_due) noexcept {
  if (was_due) {
    done_.store(begun_.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  }
  active_.store(false, std::memory_order_seq_cst);
  ring();
}

void LockStep::stop() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  ring();
}

}  // namespace deepum::runtime
