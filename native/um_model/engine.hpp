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
#include "machine.hpp"

namespace deepum::um_model {

// 0: the program's clock; 1: the server's; others: one for each helper and each thread beside the
// program.
using Host = std::uint32_t;
using Stream = std::uint32_t;
using Event = std::uint32_t;
using Word = std::uint32_t;
inline constexpr Host kProgram = 0;
inline constexpr Host kServer = 1;
inline constexpr int kCpu = -1;
inline constexpr std::uint64_t kBlockBytes = 2ull << 20;
inline constexpr std::uint64_t kNotKnown = ~0ull;

struct Range {
  std::uint64_t address;
  std::uint64_t bytes;
};

struct Access {
  Range range;
  bool read;
  bool write;
  // What is read was written by the same launch, or may have been: scratch memory.
  bool written_first = false;
  // Not known exactly: discarded content that it seems to read is counted, but no error.
  bool estimated = false;
  // How many discards had been asked for (Engine::discards) when this memory became the reader's
  // own, which it has been ever since: a later one has dropped what was in use. kNotKnown: it may
  // hold nothing that was ever written, which may be read; then nothing is an error.
  std::uint64_t held_since = 0;
};

// What a launch does in truth.
struct Kernel {
  std::vector<Access> accesses;  // in the order in which the kernel sweeps over them
  // besides, as far as anybody knows: no cost, but what was discarded there counts as rewritten.
  std::vector<Range> perhaps_written;
  // May write anything besides: what was discarded before is not certainly unwritten any more.
  bool unknown = false;
  double flops = 0;
  bool matrix_units = false;  // flops run at tensor_gflops
  // Of that rate, reached by this kind of kernel; 0: the machine's sustained one.
  double peak_fraction = 0;
  // Time with all of its memory there, as measured; 0: follows from the figures here.
  double measured_ns = 0;
  // Equal parts of the arithmetic, each occupying a multiprocessor; 0: divided at will.
  std::uint64_t tiles = 0;
  std::uint64_t device_bytes = 0;  // read and written in plain device memory besides
  bool of_graph = false;           // a node of a launched graph: the host makes no call for it
  std::uint64_t tag = 0;           // the caller's own, for activities
  // Run when the kernel completes, in completion order; executes host kernels on data.
  std::function<void()> effect;
};

// How long it takes with all of its memory there, ns.
double kernel_ns(const Machine& machine, const Kernel& kernel);

enum class Advice {
  read_mostly,
  unset_read_mostly,
  preferred_location,
  unset_preferred_location,
  accessed_by,
  unset_accessed_by
};

struct Options {
  int devices = 1;
  std::uint64_t memory_bytes = 0;  // per device; 0: the machine's
  // By device, the last for all further ones; empty: memory_bytes.
  std::vector<std::uint64_t> memory_of_device;
  bool density_prefetcher = true;
  std::uint64_t host_memory_bytes = 0;  // 0: the machine's
  // Not 0: the driver now and then evicts a random block on its own (for tests of belief).
  std::uint64_t random_eviction_seed = 0;
};

struct Counters {      // since the start, one device or (device kCpu) all
  double gpu_time_ns;  // virtual time at which the last work completed
  double compute_ns;   // kernels without stalls
  double stall_ns;     // kernels waiting for memory
  std::uint64_t kernels, copies;
  // Fault: one 64 KiB region that missed; batch: what was serviced together.
  std::uint64_t faults, fault_batches;
  std::uint64_t bytes_h2d, bytes_d2h;   // over the link, all causes
  std::uint64_t bytes_demand;           // h2d by faults
  std::uint64_t bytes_prefetched;       // h2d by prefetch
  std::uint64_t bytes_prefetched_used;  // of these, accessed by a kernel before they left again
  std::uint64_t bytes_driver_evicted;   // d2h by the driver for want of space
  std::uint64_t bytes_prefetched_out;   // d2h by prefetch to the CPU
  std::uint64_t bytes_discarded;        // dropped without a copy
  std::uint64_t bytes_accessed;         // by kernels, blocks counted once a launch
  // Of these, not there when the kernel needed them, in flight or faulted.
  std::uint64_t bytes_missing;
  std::uint64_t resident_bytes, peak_resident_bytes;
  std::uint64_t managed_bytes, peak_managed_bytes;
  // Kernels that read a block between its discard and its rewriting, as far as that is known.
  std::uint64_t discarded_uses;
  std::uint64_t discarded_uses_sure;  // of these, errors for certain (losses.hpp), each a violation
  // Of the host, with all devices only; 0 where its memory has no size:
  std::uint64_t host_bytes, peak_host_bytes;  // in its memory, managed and pinned
  std::uint64_t bytes_disk_read, bytes_disk_written;
};

// A violation of memory semantics that a kernel ran into; the driver turns it into a sticky error.
struct Violation {
  std::uint64_t address;
  const char* reason;
};

// Told what hosts ask of an engine, before it is done: for records of a run (work_log.hpp). What
// follows from a call is not told.
class Observer {
 public:
  virtual void mapped(Range, bool /*managed*/, int /*device*/) {}
  virtual void unmapped(std::uint64_t /*address*/) {}
  virtual void launched(Host, Stream, const Kernel&) {}
  virtual void copied(Host, Stream, std::span<const Range> /*destination*/,
                      std::span<const Range> /*source*/, std::uint64_t /*bytes*/, int /*kind*/) {}
  virtual void filled(Host, Stream, Range) {}
  virtual void prefetched(Host, Stream, std::span<const Range>, int /*location*/) {}
  virtual void discarded(Host, Stream, std::span<const Range>, int /*location*/,
                         bool /*then_prefetch*/) {}
  virtual void advised(Host, std::span<const Range>, Advice, int /*location*/) {}
  virtual void recorded(Host, Event, Stream) {}
  virtual void waited(Host, Stream, Event) {}
  virtual void called(Host, Stream) {}
  virtual void spent(Host, double /*ns*/) {}
  virtual void synchronised(Host, Event) {}
  virtual void synchronised_stream(Host, Stream) {}

 protected:
  ~Observer() = default;
};

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

  // Observed faults since the last call, for the fault source: those that one batch serviced of one
  // block, in the order of service. Times are those of the batch's service, ns. At most 65,536 are
  // kept, the oldest; what came after them is counted.
  struct Fault {
    std::uint64_t address;  // of the block
    std::uint32_t faults;
    int device;
    bool write;  // of the accesses that faulted at least one writes; else all of them read
    double start, end;
  };
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
