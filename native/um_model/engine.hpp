// Virtual time: one host, its GPUs with unified memory, streams, events, copy engines. The
// simulated driver enqueues what the program and the shim ask for; the engine decides when it
// happens and what it costs. Deterministic; not thread-safe (the caller holds one lock around it);
// no CUDA types.
//
// Host clocks. All threads that launch, copy, allocate or synchronise share the *program* clock:
// their calls follow each other. A *helper* thread (one that only moves memory) has a clock of its
// own; its calls start no earlier than decision_latency_ns after the latest program call. So no
// action starts before the decision for it could have been made.
//
// A *thread* beside the program has a clock of its own that follows nobody's. It acts at times that
// were agreed before (at), so that what it does depends on what has happened by then and on nothing
// later.
//
// A *server* is the thread that acts while a stream stands still for it (serve): its calls are made
// at the stream's time.
//
// The engine processes work in order of virtual start time, and never beyond the earliest time at
// which the host may still enqueue more: a query advances it to that host's clock, a blocking call
// until its target completes (the clock follows).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "activity.h"
#include "counters.hpp"
#include "handles.hpp"
#include "kernel.hpp"
#include "machine.hpp"
#include "observer.hpp"
#include "options.hpp"

namespace deepum::um_model {

class Engine {
 public:
  Engine(const Machine& machine, const Options& options);
  ~Engine();
  void observe(Observer* observer);  // outlives the engine, or null

  // Hosts and the clock (ns).
  Host add_helper();
  Host add_thread();
  // The thread acts at that time, or once its clock has come there: `action` is called with both
  // clocks there, and asks for what it wants without waiting: no query, no synchronisation.
  void at(Host thread, double time, std::function<void()> action);
  double now(Host host) const;
  void spend(Host host, double ns);  // a host call that costs time
  // Brings its clock to what has happened already: of a thread that polls, and sleeps in between.
  void keep_up(Host host);
  // Marks a program call: helper clocks are brought forward by it (see above).
  void program_call();

  // Memory. Addresses are the driver's; managed ranges are tracked by 2 MiB block of the address
  // space.
  void map_managed(Range range, int device);
  // Plain device memory: always resident, takes space from managed memory.
  void map_device(Range range, int device);
  void unmap(std::uint64_t address);
  std::uint64_t memory_bytes(int device) const;  // of the card
  // As cuMemGetInfo: total less device memory and resident managed memory.
  std::uint64_t free_bytes(int device) const;
  bool is_resident(int device, std::uint64_t address) const;
  // Where the content of a UM block is, by 64 KiB region, lowest address first. What the host has
  // is in its memory, on the disk, or both. In memory are places for what is leaving, too. The last
  // two are 0 where the host's memory has no size.
  struct Content {
    int device;
    std::uint32_t on_device, on_host, arriving, leaving, discarded;
    std::uint32_t in_host_memory, on_disk;
  };
  bool content(std::uint64_t address, Content& content) const;  // false: never mapped

  // Memory that the program pins: it takes from the host's.
  // The program waits for transfers of what has to go to the disk for it.
  void pin(std::uint64_t bytes);
  void unpin(std::uint64_t bytes);
  std::uint64_t pinned() const;  // 0 where the host's memory has no size
  // Whether what is mapped and that much more can be held: pinned memory by the host's, managed by
  // that and the devices' together, unless there is a disk. Plain device memory takes from the
  // devices'.
  bool holds(std::uint64_t managed, std::uint64_t pinned, std::uint64_t plain) const;

  // Streams and events.
  Stream add_stream(int device);
  void remove_stream(Stream stream);  // what is queued still runs
  Event add_event();
  void remove_event(Event event);

  int launches_outstanding() const;  // those that count against the launch queue

  // Work, in stream order. `host` is whose clock it is enqueued at; launch costs launch_ns and
  // blocks while launch_queue is full.
  void launch(Host host, Stream stream, Kernel kernel);
  // kind: 0 h2h, 1 h2d, 2 d2h, 3 d2d; the managed side is resolved by residency.
  void copy(Host host, Stream stream, Range destination, Range source, int kind,
            std::function<void()> effect);
  // The rows of a pitched copy, `bytes` in all.
  void copy(Host host, Stream stream, std::vector<Range> destination, std::vector<Range> source,
            std::uint64_t bytes, int kind, std::function<void()> effect);
  void fill(Host host, Stream stream, Range destination, std::function<void()> effect);  // memset
  void prefetch(Host host, Stream stream, std::span<const Range> ranges, int location);
  // Effect poisons data.
  void discard(Host host, Stream stream, std::span<const Range> ranges, int then_location,
               bool then_prefetch);
  // Asked for so far.
  std::uint64_t discards() const;
  void advise(Host host, std::span<const Range> ranges, Advice advice, int location);
  void record(Host host, Event event, Stream stream);
  // A wait on an event never recorded does nothing.
  void wait(Host host, Stream stream, Event event);
  // Host function, costs host_function_ns of stream time.
  void call(Host host, Stream stream, std::function<void()> function);
  // The stream stands still, host_function_ns and as long as the server's calls take, while
  // `function` has the server act. It is called with the stream's turn, and returns when the server
  // has done its part.
  void serve(Host host, Stream stream, std::function<void()> function);
  void on_discard(std::function<void(Range)> poison);  // called for each range dropped

  // Words that only streams change, 0 at first and never made smaller: a wait is for a value of at
  // least that.
  Word add_word();
  void wait_value(Host host, Stream stream, Word word, std::uint64_t least);
  void write_value(Host host, Stream stream, Word word, std::uint64_t value);

  // Values in pinned memory: a wait holds the stream until `ready` answers true at a time when the
  // engine processes work. A blocking call returns early, its target incomplete, when a stream
  // comes to a value that is not there: whoever blocks may have to provide it, and tries again
  // until the query answers yes.
  void wait_until(Host host, Stream stream, std::function<bool()> ready);

  // Access by the CPU (a host read or write of managed memory through the driver's copies):
  // migrates to the CPU.
  void cpu_access(Host host, Range range, bool write);

  // Progress.
  // What happens by now(host) has happened: counters and faults tell of it.
  void catch_up(Host host);
  bool query(Host host, Event event);  // complete by now(host)?
  bool query_stream(Host host, Stream stream);
  // By what has happened so far, which this does not advance; true for one never recorded.
  bool completed(Event event) const;
  bool completed_stream(Stream stream) const;
  void synchronise(Host host, Event event);  // the clock goes to its completion
  void synchronise_stream(Host host, Stream stream);
  void synchronise_device(Host host, int device);
  double event_time(Event event) const;  // completion, ns; NaN while incomplete
  // True: nothing is left to happen, but not all work is done (a wait_until that nobody has
  // satisfied).
  bool deadlocked() const;

  Counters counters(int device) const;
  const std::vector<Violation>& violations() const;

  // Since the last call. At most 65,536 are kept, the oldest; what came after them is counted.
  std::vector<Fault> take_faults();
  std::uint64_t faults_dropped() const;  // records, since the start

  // Activities (activity.h) from now on, and those since the last call, in the order in which they
  // were noted. What the CPU's own accesses and moves between devices copy is not among them.
  void keep_activities();
  std::vector<deepum_activity> take_activities();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace deepum::um_model
