// The parts of an engine, wired together.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "activities.hpp"
#include "compute_engine.hpp"
#include "copy_engine.hpp"
#include "engine.hpp"
#include "streams.hpp"

namespace deepum::um_model {

// Advice takes effect when the host's clock says so, not when the caller does.
class AdviceQueue final : public Actor {
 public:
  AdviceQueue(Timeline& timeline, BlockTable& blocks, Residency& residency)
      : timeline_(timeline), blocks_(blocks), residency_(residency) {}
  void push(double time, std::span<const Range> ranges, Advice advice, int location);
  void wake(double now, std::uint64_t token) override;

 private:
  struct Pending {
    std::uint64_t token;
    std::vector<Range> ranges;
    Advice advice;
    int location;
  };
  void apply(Block& block, Advice advice, int location);
  Timeline& timeline_;
  BlockTable& blocks_;
  Residency& residency_;
  std::uint64_t tokens_ = 0;
  std::vector<Pending> pending_;
};

// What threads beside the program will do.
class Alarms final : public Actor {
 public:
  Alarms(Timeline& timeline, std::vector<double>& clocks) : timeline_(timeline), clocks_(clocks) {}
  void set(Host thread, double time, std::function<void()> action);
  void wake(double now, std::uint64_t token) override;

 private:
  struct Alarm {
    Host thread;
    std::function<void()> action;
  };
  Timeline& timeline_;
  std::vector<double>& clocks_;
  std::uint64_t tokens_ = 0;
  std::unordered_map<std::uint64_t, Alarm> pending_;
};

struct Engine::State final : Executor, Actor {
  State(const Machine& machine, const Options& options);

  // Executor
  bool begin(Op& op, double now) override;
  void ended(Op& op, double now) override;
  // Actor: the end of an operation that no engine carries out; the token is the operation.
  void wake(double now, std::uint64_t token) override;
  void finish_at(double time, Op& op) {
    timeline.at(time, *this, reinterpret_cast<std::uintptr_t>(&op));
  }

  // Hosts
  double now(Host host) const;
  void spend(Host host, double ns);
  void move_clock(Host host, double time);

  // Progress
  bool step(double horizon);
  void run_until(double time) {
    poll_holds(timeline.now());
    while (step(time)) {
    }
  }
  // False: not done, because nothing is left to happen, or because a stream has come to a value
  // that is not there: the caller may be the one who provides it, and tries again.
  template <typename Done>
  bool run_to(Done done) {
    poll_holds(timeline.now());
    interrupted = false;
    while (!done()) {
      if (interrupted || !step(kForever)) {
        return done();
      }
    }
    return true;
  }
  bool poll_holds(double now);

  StreamQueue& queue(Stream stream) { return *streams[stream]; }
  void enqueue(Host host, Stream stream, decltype(Op::work) work);
  // Number `which` of the discards.
  void discard(std::span<const Range> ranges, std::uint64_t which);
  // The driver's part, without any copy.
  double handling_ns(std::span<const Range> ranges);
  // From the devices' memory; false: some of the ranges is there still.
  bool drop_discarded(std::span<const Range> ranges);
  void recycle_streams();

  const Machine machine;
  const Options options;
  Timeline timeline;
  BlockTable blocks;
  Residency residency;
  FaultService faults;
  AdviceQueue advice;
  std::vector<std::unique_ptr<ComputeEngine>> compute;
  std::vector<std::unique_ptr<CopyEngine>> to_device, to_cpu;

  std::vector<double> clocks{0.0, 0.0};  // by host
  std::vector<bool> threads;             // by host: beside the program
  Alarms alarms;
  double last_program_call = 0;

  std::vector<std::unique_ptr<StreamQueue>> streams;
  std::vector<bool> removed;  // by stream
  std::vector<Stream> free_streams, draining;
  std::vector<std::shared_ptr<Recording>> events;  // latest recording of each; null: never recorded
  std::vector<Event> free_events;
  std::deque<ValueWord> words;
  std::vector<Op*> holds;  // streams that wait for a value
  bool holds_changed = false;
  bool interrupted = false;

  std::uint64_t discards = 0;  // asked for
  int launches_outstanding = 0;
  double last_work = 0;  // ns, when the latest work completed
  std::uint64_t managed_bytes = 0, peak_managed_bytes = 0;
  std::vector<std::uint64_t> device_managed, device_peak_managed;
  std::vector<double> device_last_work;
  std::function<void(Range)> poison;
  Observer* observer = nullptr;
  std::unique_ptr<Activities> activities;  // null: not kept
};

}  // namespace deepum::um_model
