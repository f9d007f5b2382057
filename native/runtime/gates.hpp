// Gates in stream order: under pressure each launch of a program that does not run in lock-step
// waits, on its stream and not on the host, until the mover has opened its gate. A gate is a word
// in host memory for each stream id: launches up to its value may start. The mover writes it, by a
// stream of its own, behind the moves that the launch is held for; launches that wait for none are
// opened once the daemon has decided about them.
//
// A gate is a hint. A launch that starts too early faults on what has not come, and nothing else:
// no discard is safe because of a gate. So all of them may be opened at any time, and are, by a
// thread that nothing of the driver's can hold up, when no gate has opened for a while although one
// is waited at: the daemon or the mover is late, or something that the program launched waits for
// what is behind a gate.
//
// Nothing waits for what is behind a gate that waits for it: a launch's moves wait for launches
// before it alone, each of which has a marker that lies before the gate, or is not gated.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "records.h"

namespace deepum::runtime {

class Gates {
 public:
  Gates() noexcept = default;
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  // --- The mover's side.
  // From now on launches have gates; true if they have. With a context of the program's current,
  // whose end is the end of all gates. Once they have ended, or cannot be had, they never begin.
  bool begin(CUcontext home) noexcept;
  CUcontext home() const noexcept { return home_; }
  // New launches have none while they are, since none has moves to wait for.
  void suspend(bool suspended) noexcept { suspended_.store(suspended, std::memory_order_release); }

  // --- Both sides.
  bool used() const noexcept { return state_.load(std::memory_order_acquire) == State::kUsed; }
  // A new launch has one.
  bool wanted() const noexcept { return used() && !suspended_.load(std::memory_order_acquire); }
  // Opens all for good. No reason: the program's own doing.
  void end(const char* why = nullptr) noexcept;

  // --- The program's side.
  // A launch is about to be queued on the stream, and all launches before it on that stream have
  // been queued and lie before markers. True: the mover has to be woken, which may have processed
  // its decision before this launch was queued.
  bool launch(CUstream stream, std::uint32_t id, std::uint64_t sequence) noexcept;
  // Waits until no stream waits at a gate, half a second at most, 20 ms without one that opens. For
  // calls in which the driver may wait for a stream with locks held that the mover's calls need:
  // NVIDIA's does so where it frees memory, copies to pageable memory, sets managed memory
  // synchronously or loads code.
  void settle() noexcept;

  // --- The mover's side, continued.
  // All commands that events up to this one caused have been carried out as far as they can be. Set
  // before `last_waiter` is asked.
  void set_processed(std::uint64_t sequence) noexcept {
    processed_.store(sequence, std::memory_order_seq_cst);
  }
  std::uint64_t processed() const noexcept { return processed_.load(std::memory_order_seq_cst); }
  // The last launch that waits at the gate, 0: none ever did.
  std::uint64_t last_waiter(std::uint32_t id) const noexcept {
    return queued_[id].load(std::memory_order_seq_cst);
  }
  // Which words are in use: rises when all have been opened, and what was written before counts no
  // more.
  std::uint32_t epoch() const noexcept { return epoch_.load(std::memory_order_seq_cst); }
  // The mover is in a call of the driver's meanwhile: one that does not come back is waited for no
  // longer than such a call may take.
  class Call {
   public:
    // counted: false for one that others see to.
    explicit Call(Gates& gates, bool counted = true) noexcept : gates_(gates), counted_(counted) {
      gates_.calls_.fetch_add(counted_, std::memory_order_relaxed);
    }
    ~Call() { gates_.calls_.fetch_add(counted_, std::memory_order_relaxed); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Gates& gates_;
    const bool counted_;
  };
  // Behind what is on the stream by now. False: the driver refuses.
  bool write(CUstream writer, std::uint32_t id, std::uint32_t epoch,
             std::uint64_t sequence) noexcept;

 private:
  enum class State { kNew, kUsed, kEnded };
  struct alignas(64) Word {
    std::uint64_t value;
  };
  static constexpr std::uint32_t kEpochs = 256;

  Word& word(std::uint32_t epoch, std::uint32_t id) const noexcept {
    return words_[epoch * DEEPUM_MAX_STREAMS + id];
  }
  CUdeviceptr device_word(std::uint32_t epoch, std::uint32_t id) const noexcept {
    return device_address_ + sizeof(Word) * (epoch * DEEPUM_MAX_STREAMS + id);
  }
  void watch() noexcept;
  template <typename Shut>
  void nap_while(const Shut& shut) const noexcept;
  bool waits() const noexcept;  // some launch at its gate
  bool progressed(std::array<std::uint64_t, DEEPUM_MAX_STREAMS>& seen) const noexcept;
  std::uint64_t latest() const noexcept;  // launch that waits at a gate
  bool open_all() noexcept;
  void open(std::uint32_t epochs) noexcept;

  std::atomic<State> state_{State::kNew};
  std::atomic<bool> suspended_{false};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> processed_{0};
  // Sequence: until the mover has processed it launches have no gates.
  std::atomic<std::uint64_t> resume_at_{0};
  std::array<std::atomic<std::uint64_t>, DEEPUM_MAX_STREAMS> queued_{};
  std::atomic<std::uint32_t> calls_{0};  // of the mover's, begun and ended: odd while one lasts
  Word* words_ = nullptr;                // by epoch and stream id; the driver writes them, too
  CUdeviceptr device_address_ = 0;       // of the words
  CUcontext home_ = nullptr;
  pthread_t watcher_{};
};

}  // namespace deepum::runtime
