// What the engine counts, and what a driver is told besides.
#pragma once

#include <cstdint>

namespace deepum::um_model {

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

// Faults that were observed, for a fault source: those that one batch serviced of one block, in the
// order of service. Times are those of the batch's service, ns.
struct Fault {
  std::uint64_t address;  // of the block
  std::uint32_t faults;
  int device;
  bool write;  // of the accesses that faulted at least one writes; else all of them read
  double start, end;
};

}  // namespace deepum::um_model
