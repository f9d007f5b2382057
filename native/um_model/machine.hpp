// Machines: what the model needs to know of a host, a GPU and the link between them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace deepum::um_model {

// What a discard of managed memory does.
enum class Discards {
  // With a prefetch to the host the content is nowhere: a later prefetch to a device copies
  // nothing.
  kEmpties = 0,
  // As NVIDIA's kernel module 580 and later: such a prefetch leaves zeroed pages on the host, which
  // a later one copies.
  kDriver = 1,
  kRefused = 2,  // the driver has no discards (before 580)
};

// Which calls block their caller until the stream has come to what they ask for; others return at
// once.
enum class Blocking { kNone = 0, kPrefetches = 1, kPrefetchesAndDiscards = 2 };

// Times in nanoseconds (double), sizes in bytes, rates in bytes/ns (= GB/s) and FLOP/ns (=
// GFLOP/s).
struct Machine {
  std::string_view name;         // as in sim:NAME
  std::string_view description;  // "NVIDIA V100 16 GB, PCIe 3.0 x16"
  std::string_view gpu_name;     // what cuDeviceGetName answers
  std::uint64_t memory_bytes;
  int presented_major, presented_minor;  // compute capability answered (not the speed's)
  int multiprocessors;
  int clock_khz;
  double fp32_gflops, tensor_gflops;  // peak; tensor: fp16/bf16/tf32 with matrix units
  double memory_gbps;                 // device memory, peak
  // What the best kernels reach of these peaks for as long as they run, 0 to 1: large matrix
  // products, copies.
  double fp32_sustained, tensor_sustained, memory_sustained;
  double h2d_gbps, d2h_gbps;  // pinned bulk copies and prefetches
  double copy_latency_ns;     // fixed cost of one bulk transfer
  double host_gbps;           // copies from host memory to host memory
  double fault_batch_ns;      // base cost of servicing one batch
  double fault_ns_per_byte;   // on-demand migration, density prefetcher on
  double fault_ns_per_byte_no_prefetcher;
  double fault_batch_no_prefetcher_ns;
  int faults_per_batch;
  // Driver's own eviction of a 2 MiB block inside a batch, all of it copied; 0: beside what the
  // batch brings.
  double eviction_ns_per_block;
  double min_kernel_ns;
  double launch_ns;          // host cost of a launch
  int launch_queue;          // launches the host may be ahead
  double migration_call_ns;  // host cost of a prefetch, discard or advice call
  double host_function_ns;   // stream time of a host function
  // Of a wait for a value in memory: to queue it, and of the stream once the value is there.
  double value_wait_ns;
  // Driver's handling of each UM block that a prefetch or a discard names.
  double block_ns;
  // By which a transfer takes longer while the other direction has one, 1 or more.
  double both_ways;
  Discards discards;
  // What a kernel does that needs a block of a prefetch that has begun and has not come to it. 0:
  // it waits; 1: it faults.
  int queued_prefetch_faults;
  Blocking blocking_calls;
  // From a launch to the first action of a helper thread that it caused.
  double decision_latency_ns;
  // For managed and pinned memory; 0: as much as there is to hold.
  std::uint64_t host_memory_bytes = 0;
  double disk_read_gbps = 0, disk_write_gbps = 0;  // of the disk behind it; 0: none
  // 1: what comes to a full host goes to the disk; 0: what the host used longest ago does.
  int host_keeps = 0;
  double disk_read_latency_ns = 0, disk_write_latency_ns = 0;
  // Each way: read ahead of need, and written behind it; beside the memory above.
  std::uint64_t disk_buffer_bytes = 0;
};

std::span<const Machine> machines() noexcept;
const Machine* find_machine(std::string_view name) noexcept;

}  // namespace deepum::um_model
