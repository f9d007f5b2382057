#include "gates.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "driver.hpp"
#include "message.hpp"
#include "pinned_words.hpp"
#include "relaxed.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

constexpr timespec kPollInterval{0, 20000000};  // 20 ms
// Polls in a row, counted and not timed: a program that was stopped has not waited. Doubled each
// time that all gates had to be opened although the mover had processed what waited, up to the
// most.
constexpr std::uint32_t kFirstPatience = 25, kMostPatience = 200;
// Polls during which one call of the mover's lasts: it waits for what is behind a gate. A call
// moves 32 MiB at most, in 10 ms where the driver makes the host's pages for it.
constexpr std::uint32_t kCallPatience = 8;
// How far a stream's launches may be queued beyond its gate, in words of events: some 200 launches,
// fewer than the driver's queue takes. In a launch that waits for room in it the driver holds
// locks, too.
constexpr std::uint64_t kMostAhead = 3072;
constexpr timespec kGateNap{0, 50000};         // 50 us, and as much again by the timer's slack
constexpr std::uint32_t kMostGateNaps = 5000;  // half a second
constexpr std::uint32_t kIdleGateNaps = 200;   // 20 ms

bool driver_has_gates() noexcept {
  const Driver& call = driver();
  return can_pin_words() && call.StreamWriteValue64 && call.StreamCreate && call.StreamWaitEvent;
}

}  // namespace

// For half a second at most, and no longer than gates go on to open: the mover may be waiting for
// what only the program can bring about.
template <typename Shut>
void Gates::nap_while(const Shut& shut) const noexcept {
  const int kept = errno;
  std::uint64_t seen = 0;
  for (std::uint32_t naps = 0, idle = 0; naps < kMostGateNaps && idle < kIdleGateNaps && shut();
       ++naps) {
    std::uint64_t opened = 0;
    for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
      opened += __atomic_load_n(&word(epoch_.load(std::memory_order_relaxed), id).value,
                                __ATOMIC_RELAXED);
    }
    idle = std::exchange(seen, opened) == opened ? idle + 1 : 0;
    ::nanosleep(&kGateNap, nullptr);
  }
  errno = kept;
}

bool Gates::begin(CUcontext home) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::kNew) {
    return used();
  }
  State expected = State::kNew;
  constexpr std::size_t kBytes = std::size_t{kEpochs} * DEEPUM_MAX_STREAMS * sizeof(Word);
  PinnedWords pinned;
  if (!driver_has_gates() || !pin_words(kBytes, &pinned)) {
    say(Level::kInformation, "gates: the driver has none; launches do not wait for their moves");
    state_.compare_exchange_strong(expected, State::kEnded);
    return false;
  }
  words_ = reinterpret_cast<Word*>(pinned.host);
  device_address_ = pinned.device;
  home_ = home;
  const auto body = [](void* self) -> void* {
    static_cast<Gates*>(self)->watch();
    return nullptr;
  };
  if (!start_thread(&watcher_, "deepum-gates", body, this)) {
    state_.compare_exchange_strong(expected, State::kEnded);
    return false;
  }
  ::pthread_detach(watcher_);
  return state_.compare_exchange_strong(expected, State::kUsed);  // unless they ended meanwhile
}

// The word is read first: what is open needs no wait. Nor does anything wait for a mover that is
// known to be late.
bool Gates::launch(CUstream stream, std::uint32_t id, std::uint64_t sequence) noexcept {
  const std::uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
  Word& gate = word(epoch, id);
  if (processed() < resume_at_.load(std::memory_order_relaxed) ||
      __atomic_load_n(&gate.value, __ATOMIC_RELAXED) >= sequence) {
    return false;
  }
  nap_while([&] {
    const std::uint64_t open = __atomic_load_n(&gate.value, __ATOMIC_RELAXED);
    return used() && epoch_.load() == epoch && sequence > open + kMostAhead &&
           queued_[id].load(std::memory_order_relaxed) > open;
  });
  const Relaxed mode;
  if (driver().StreamWaitValue64(stream, device_word(epoch, id), sequence,
                                 CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
    end("the driver refused to let a stream wait");
    return false;
  }
  queued_[id].store(sequence, std::memory_order_seq_cst);
  return processed() >= sequence;
}

bool Gates::write(CUstream writer, std::uint32_t id, std::uint32_t epoch,
                  std::uint64_t sequence) noexcept {
  return driver().StreamWriteValue64(writer, device_word(epoch, id), sequence,
                                     CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

void Gates::end(const char* why) noexcept {
  const State before = state_.exchange(State::kEnded);
  if (before == State::kUsed) {
    open(kEpochs);
    if (why) {
      say(Level::kInformation, "gates: %s; launches no longer wait for their moves", why);
    }
  }
}

// GEQ is cyclic: the highest value of all would lie before 0.
void Gates::open(std::uint32_t epochs) noexcept {
  for (std::uint32_t i = 0; i < epochs * DEEPUM_MAX_STREAMS; ++i) {
    __atomic_store_n(&words_[i].value, std::uint64_t{INT64_MAX}, __ATOMIC_SEQ_CST);
  }
}

// True: since the daemon or the mover is late. What the mover has queued may be written yet, and
// lower what was opened here: that is opened again at each poll.
bool Gates::open_all() noexcept {
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  if (epoch + 1 == kEpochs) {
    end("none opened for a while, again and again");
    return false;
  }
  const std::uint64_t last = latest();
  const bool late = processed() < last;
  resume_at_.store(last, std::memory_order_relaxed);
  epoch_.store(epoch + 1, std::memory_order_seq_cst);
  open(epoch + 1);
  say(Level::kInformation, "gates: none has opened for a while; all were opened");
  return late;
}

std::uint64_t Gates::latest() const noexcept {
  std::uint64_t last = 0;
  for (const std::atomic<std::uint64_t>& queued : queued_) {
    last = std::max(last, queued.load(std::memory_order_relaxed));
  }
  return last;
}

bool Gates::waits() const noexcept {
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
    const std::uint64_t queued = queued_[id].load(std::memory_order_relaxed);
    if (queued > resume_at_.load(std::memory_order_relaxed) &&
        __atomic_load_n(&word(epoch, id).value, __ATOMIC_RELAXED) < queued) {
      return true;
    }
  }
  return false;
}

void Gates::settle() noexcept {
  nap_while([this] { return used() && waits(); });
}

// A launch waits that was queued since all were opened, and no word has changed since the latest
// poll: false.
bool Gates::progressed(std::array<std::uint64_t, DEEPUM_MAX_STREAMS>& seen) const noexcept {
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  bool waits = false, changed = false;
  for (std::uint32_t id = 0; id < DEEPUM_MAX_STREAMS; ++id) {
    const std::uint64_t now = __atomic_load_n(&word(epoch, id).value, __ATOMIC_RELAXED);
    const std::uint64_t queued = queued_[id].load(std::memory_order_relaxed);
    waits |= now < queued && queued > resume_at_.load(std::memory_order_relaxed);
    changed |= std::exchange(seen[id], now) != now;
  }
  return changed || !waits;
}

// Calls nothing of the driver's: what it would have to wait for may be what it has to open.
void Gates::watch() noexcept {
  std::array<std::uint64_t, DEEPUM_MAX_STREAMS> seen{};
  std::uint32_t patience = kFirstPatience, idle = 0, same_call = 0, seen_call = 0;
  for (;;) {
    ::nanosleep(&kPollInterval, nullptr);
    const bool ended = state_.load(std::memory_order_seq_cst) == State::kEnded;
    open(ended ? kEpochs : epoch_.load(std::memory_order_relaxed));
    idle = ended || progressed(seen) ? 0 : idle + 1;
    const std::uint32_t call = calls_.load(std::memory_order_relaxed);
    same_call = call % 2 == 1 && call == std::exchange(seen_call, call) ? same_call + 1 : 0;
    if (same_call >= kCallPatience && idle >= kCallPatience) {
      idle = same_call = 0;
      open_all();
      continue;
    }
    if (idle >= patience) {
      idle = 0;
      if (open_all()) {
        continue;
      }
      patience *= 2;
      if (patience > kMostPatience) {
        end("none opened for seconds, again and again");
      }
    }
  }
}

}  // namespace deepum::runtime
