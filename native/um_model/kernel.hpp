// A launch, as the engine is told of it: what it touches, and what it costs.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "handles.hpp"
#include "machine.hpp"

namespace deepum::um_model {

inline constexpr std::uint64_t kNotKnown = ~0ull;

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

}  // namespace deepum::um_model
