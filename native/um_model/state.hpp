// The engine's insides: streams of operations, one agenda of things to come in virtual time, one compute engine and two copy
// engines a device.
#pragma once

#include <deque>
#include <limits>
#include <optional>
#include <queue>
#include <random>
#include <variant>

#include "residency.hpp"

namespace deepum::um_model {

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr double kHostCopyGbps = 10;      // memory to memory on the host; [E]
inline constexpr double kHostFunctionNs = 10e3;  // a host function's hand-over; [E]
// Blocks that a kernel's resident threads sweep at once and so fault on together: 80 multiprocessors x 2048 threads x 16 B is
// 2.5 MB of each of a few arrays [E].
inline constexpr std::size_t kFaultWindow = 4;

enum Direction { kIn = 0, kOut = 1 };

struct Marker {  // one recording of an event
  double time = kNever;
  std::vector<Stream> waiting;
  bool complete() const { return time != kNever; }
};

struct KernelWork {
  Kernel kernel;
  bool is_copy = false;  // a copy inside the device, or a fill
};
struct CopyWork {  // over the link; device-to-device copies and fills are kernels
  Range managed;   // the device side, if managed
  std::uint64_t bytes;
  Direction direction;
  bool on_host_only;
  std::function<void()> effect;
};
struct MoveWork {
  std::vector<Range> ranges;
  int location;
};
struct DiscardWork {
  std::vector<Range> ranges;
  int then_location;
  bool then_prefetch;
};
struct RecordWork {
  std::shared_ptr<Marker> marker;
};
struct WaitWork {
  std::shared_ptr<Marker> marker;
};
struct CallWork {
  std::function<void()> function;
};
struct HoldWork {
  std::function<bool()> ready;
};
using Work = std::variant<KernelWork, CopyWork, MoveWork, DiscardWork, RecordWork, WaitWork, CallWork, HoldWork>;

struct Operation {
  double enqueued;
  Work work;
};

struct StreamState {
  int device = 0;
  bool removed = false;
  bool scheduled = false;  // on the agenda, at an engine, or waiting
  double last_end = 0;
  std::deque<Operation> operations;
};

// A block that a kernel sweeps over, in order.
struct Step {
  Block* block;
  Mask mask;
  bool read, write;
  float weight;  // part of the kernel's compute time
};

struct Compute {  // one kernel at a time
  std::deque<Stream> waiting;
  bool busy = false;
  Stream stream = 0;
  double duration = 0;
  std::size_t next = 0;
  std::vector<Step> steps;
};

struct CopyEngine {  // one transfer at a time, in order of arrival
  std::deque<Stream> waiting;
  bool busy = false;
  Stream stream = 0;
  double free_at = 0;
  std::size_t next = 0;
  std::vector<Block*> blocks;
  Block* moving = nullptr;  // block in flight, and the regions that travel
  Mask moving_mask = 0;
  std::uint64_t bytes = 0;
};

struct DeviceState {
  Memory memory;
  Compute compute;
  CopyEngine copy[2];
  double fault_free_at = 0;  // the driver services one batch at a time
  Counters counters{};
};

enum class Happening : std::uint8_t { stream_ready, kernel, copy_in, copy_out };

struct Entry {
  double time;
  std::uint64_t order;
  Happening what;
  std::uint32_t index;  // stream or device
  bool operator>(const Entry& other) const { return time != other.time ? time > other.time : order > other.order; }
};

struct Engine::State {
  State(const Machine& machine, const Options& options);

  // Scheduling (scheduler.cpp).
  void enqueue(Host host, Stream stream, Work work);
  void schedule(Stream stream);             // its first operation, when it may start
  void finish(Stream stream, double time);  // of the first operation
  void at(double time, Happening what, std::uint32_t index);
  void start(Stream stream, double time);  // the first operation is ready
  bool step(double limit);                 // one thing on the agenda, if due by limit
  template <typename Done>
  void run_until(Done&& done) {
    while (!done() && step(kNever)) {
    }
  }
  void run_to(double limit) {
    while (step(limit)) {
    }
  }
  void poll_holds(double time);
  void complete(Marker& marker, double time);

  // Kernels and faults (kernels.cpp).
  void start_kernel(int device, double time);
  void continue_kernel(int device, double time);
  double service_faults(int device, std::size_t first, double time);
  void touch(DeviceState& device, const Step& step);
  KernelWork as_kernel(Range destination, std::optional<Range> source, std::function<void()> effect);

  // Moves (moves.cpp).
  void start_copy(int device, Direction direction, double time);
  void continue_copy(int device, Direction direction, double time);
  void copy_next(int device, Direction direction, double time);
  void finish_copy(int device, Direction direction, double time);
  // The driver makes room for one block: 0 when there is, else what the eviction costs; negative when nothing may go.
  double make_room(int device, std::uint64_t ticket);
  void evict(int device, Block& block);    // by the driver, content copied out where it is the only copy
  void release(int device, Block& block);  // the chunk is free; content stays where else it is
  void take_chunk(int device, Block& block);
  void settle(int device, Block& block, Mask mask, bool prefetched);
  void collapse(Block& block);  // a write under read_mostly, or any write: copies elsewhere are stale
  void discard(const DiscardWork& work);
  void forget_region(std::unique_ptr<Region> region);
  void note_memory(DeviceState& device);

  Machine machine;
  Options options;
  std::vector<double> clocks;
  double program_mark = 0;
  double now = 0;  // of the last thing that happened
  std::uint64_t order = 0;
  std::uint64_t ticket = 0;
  std::uint64_t launched = 0, completed = 0;
  double completed_at = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> agenda;
  std::vector<StreamState> streams;
  std::vector<std::shared_ptr<Marker>> events;
  std::vector<Stream> holds;
  std::vector<DeviceState> devices;
  Residency residency;
  std::vector<std::unique_ptr<Region>> unmapped;  // until nothing runs
  std::map<std::uint64_t, std::pair<Range, int>> device_ranges;
  std::uint64_t managed_bytes = 0, peak_managed_bytes = 0;
  std::function<void(Range)> poison;
  std::vector<Violation> violations;
  std::vector<Engine::Fault> observed;  // faults, for the fault source
  std::mt19937_64 random;
  bool stuck = false;
};

}  // namespace deepum::um_model
