// Machine presets. Every figure has its source beside it; [?] marks one that nobody has measured
// for this project.
#include "machine.hpp"

#include <algorithm>
#include <array>

namespace deepum::um_model {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kBlock = 2.0 * 1024 * 1024;

constexpr std::uint64_t gib(double n) { return static_cast<std::uint64_t>(n * kGiB); }

// Fault service as measured on a Titan V behind PCIe 3.0 x16 (uvm-eval, figures for the fault batch
// with and without prefetching,
// +-10 %): 70 us + 0.21 us/KB with the density prefetcher, 40 us + 1.24 us/KB without; 185 us for
// an eviction inside a batch, of which 163 us are the copy. Bulk copies of the same machine: 12.9
// GB/s, 4 KB in 2 us, 1 MB in 83 us.
constexpr double kBatch = 70e3;
constexpr double kBatchNoPrefetcher = 40e3;
constexpr double kPerByte = 210.0 / 1024;
constexpr double kPerByteNoPrefetcher = 1240.0 / 1024;
constexpr double kEviction = 185e3;
constexpr double kEvictionHandling = 185e3 - 163e3;
constexpr double kPcie3 = 12.9;
constexpr double kCopyLatency = 2e3;

// The same driver behind a faster link: the CPU's part of the cost stays, the copy's shrinks [?].
constexpr double per_byte(double measured, double gbps) { return measured - 1 / kPcie3 + 1 / gbps; }
constexpr double eviction(double gbps) { return kEvictionHandling + kBlock / gbps; }

constexpr double kPcie4 = 25;  // pinned copies, PCIe 4.0 x16 [?]
constexpr double kPcie5 = 52;  // pinned copies, PCIe 5.0 x16 [?]

// What does not depend on the card.
// uvm_perf_fault_batch_count's default (open-gpu-kernel-modules).
constexpr int kFaultsPerBatch = 256;
constexpr double kHostCopy = 10;    // one thread's memcpy, GB/s [?]
constexpr double kMinKernel = 2e3;  // shortest kernel [?]
// Back-to-back launches of short kernels (NVIDIA blog, "Getting Started with CUDA Graphs", V100).
constexpr double kLaunch = 3.8e3;
constexpr int kLaunchQueue = 1024;       // [?]
constexpr double kMigrationCall = 10e3;  // cuMemPrefetchAsync and the like: an ioctl [?]
// cuLaunchHostFunc: round trip to a thread of the driver's [?].
constexpr double kHostFunction = 10e3;
constexpr double kValueWait = 1e3;         // cuStreamWaitValue64 [?]
constexpr double kDecisionLatency = 20e3;  // ring, daemon, mover [?]

// What differs from card to card.
struct Card {
  std::string_view name, description, gpu_name;
  std::uint64_t memory;
  int major, minor, multiprocessors, clock_khz;
  double fp32, tensor, memory_gbps;  // peaks
  double fp32_sustained, tensor_sustained, memory_sustained, link;
};

constexpr Machine machine(const Card& card) {
  const bool measured = card.link == kPcie3;
  return {
      .name = card.name,
      .description = card.description,
      .gpu_name = card.gpu_name,
      .memory_bytes = card.memory,
      .presented_major = card.major,
      .presented_minor = card.minor,
      .multiprocessors = card.multiprocessors,
      .clock_khz = card.clock_khz,
      .fp32_gflops = card.fp32,
      .tensor_gflops = card.tensor,
      .memory_gbps = card.memory_gbps,
      .fp32_sustained = card.fp32_sustained,
      .tensor_sustained = card.tensor_sustained,
      .memory_sustained = card.memory_sustained,
      .h2d_gbps = card.link,
      .d2h_gbps = card.link,
      .copy_latency_ns = kCopyLatency,
      .host_gbps = kHostCopy,
      .fault_batch_ns = kBatch,
      .fault_ns_per_byte = measured ? kPerByte : per_byte(kPerByte, card.link),
      .fault_ns_per_byte_no_prefetcher =
          measured ? kPerByteNoPrefetcher : per_byte(kPerByteNoPrefetcher, card.link),
      .fault_batch_no_prefetcher_ns = kBatchNoPrefetcher,
      .faults_per_batch = kFaultsPerBatch,
      .eviction_ns_per_block = measured ? kEviction : eviction(card.link),
      .min_kernel_ns = kMinKernel,
      .launch_ns = kLaunch,
      .launch_queue = kLaunchQueue,
      .migration_call_ns = kMigrationCall,
      .host_function_ns = kHostFunction,
      .value_wait_ns = kValueWait,
      .block_ns = 0,
      .both_ways = 1,
      .discards = Discards::kEmpties,
      .queued_prefetch_faults = 0,
      .blocking_calls = Blocking::kNone,
      .decision_latency_ns = kDecisionLatency,
  };
}

// Memory, multiprocessors, clock and peak rates: NVIDIA's data sheet or white paper of the card,
// dense rates, memory as sold. Sustained fractions: the best that public measurements show, so that
// the rest of a kernel's inefficiency has to come from its shape.
//   [DB] github.com/chsasank/device-benchmarks: PyTorch, FP32 products and copies of up to 6888^2
//   elements [TB] github.com/qhduan/transformers-benchmarks: PyTorch, best of a range of sizes
//   [MAMF] github.com/stas00/ml-engineering, "Maximum Achievable Matmul FLOPS": PyTorch, BF16, best
//   of many shapes

// Tesla V100 PCIe data sheet: 14 TFLOPS FP32, 112 TFLOPS tensor, 900 GB/s; white paper: 80 SMs,
// 1380 MHz boost. PyTorch's CUDA 13 builds carry no code for compute capability 7.0, so the card
// presents itself as 8.0; its speed is the V100's. Sustained: FP32 14 of 15.7 TFLOPS (V100 SXM2
// [TB]; [DB] has 13; a Titan V reaches 12.9 of 14.9, gist ypwhs/a156353c); tensor 101 of 112 (V100
// PCIe, cuBLAS, 8192^3; NVIDIA developer forum 79781); memory 790 of 900 GB/s (V100 PCIe, copy;
// paranumal.com, "Rough-n-Ready Roofline: NVIDIA V100 edition"; clpeak's read reaches 843 on an
// SXM2).
constexpr Card kV100_16{
    .name = "v100-16gb",
    .description =
        "NVIDIA V100 16 GB, PCIe 3.0 x16 (presents compute capability 8.0, with a V100's speed)",
    .gpu_name = "Tesla V100-PCIE-16GB (simulated)",
    .memory = gib(16),
    .major = 8,
    .minor = 0,
    .multiprocessors = 80,
    .clock_khz = 1380000,
    .fp32 = 14e3,
    .tensor = 112e3,
    .memory_gbps = 900,
    .fp32_sustained = 0.89,
    .tensor_sustained = 0.90,
    .memory_sustained = 0.88,
    .link = kPcie3,
};

constexpr Card v100_32() {
  Card card = kV100_16;
  card.name = "v100-32gb";
  card.description =
      "NVIDIA V100 32 GB, PCIe 3.0 x16 (presents compute capability 8.0, with a V100's speed)";
  card.gpu_name = "Tesla V100-PCIE-32GB (simulated)";
  card.memory = gib(32);
  return card;
}

// Ada white paper, appendix A: 128 SMs, 2520 MHz boost, 82.6 TFLOPS FP32, 165.2 TFLOPS FP16 with
// FP32 accumulate, 1008 GB/s, 24 GB. Sustained: FP32 58 TFLOPS, memory 912 GB/s [DB]; tensor 161
// TFLOPS [TB].
constexpr Card kRtx4090{
    .name = "rtx4090",
    .description = "NVIDIA GeForce RTX 4090 24 GB, PCIe 4.0 x16",
    .gpu_name = "NVIDIA GeForce RTX 4090 (simulated)",
    .memory = gib(24),
    .major = 8,
    .minor = 9,
    .multiprocessors = 128,
    .clock_khz = 2520000,
    .fp32 = 82.6e3,
    .tensor = 165.2e3,
    .memory_gbps = 1008,
    .fp32_sustained = 0.70,
    .tensor_sustained = 0.97,
    .memory_sustained = 0.90,
    .link = kPcie4,
};

// A100 white paper and data sheet: 108 SMs, 1410 MHz, 19.5 TFLOPS FP32, 312 TFLOPS FP16/BF16, 1555
// GB/s, 40 GB. Sustained: FP32 19 of 19.5 TFLOPS (A100 80 GB [DB]); tensor 256 of 312 (A100 PCIe
// [MAMF]); memory 1.80 of 2.04 TB/s (A100 80 GB, reads; NVIDIA developer forum 339083).
constexpr Card kA100{
    .name = "a100-40gb",
    .description = "NVIDIA A100 40 GB, PCIe 4.0 x16",
    .gpu_name = "NVIDIA A100-PCIE-40GB (simulated)",
    .memory = gib(40),
    .major = 8,
    .minor = 0,
    .multiprocessors = 108,
    .clock_khz = 1410000,
    .fp32 = 19.5e3,
    .tensor = 312e3,
    .memory_gbps = 1555,
    .fp32_sustained = 0.97,
    .tensor_sustained = 0.82,
    .memory_sustained = 0.88,
    .link = kPcie4,
};

// H200 SXM data sheet: 67 TFLOPS FP32, 989 TFLOPS BF16 dense, 4.8 TB/s, 141 GB (10^9); H100 white
// paper: 132 SMs; boost clock 1980 MHz. Sustained: FP32 47 of 60 TFLOPS (H200 NVL;
// github.com/xzwgit/gpu-flops-bench); tensor 792 of 989 (H100 SXM, the same chip [MAMF]); memory as
// the A100's [?].
constexpr Card kH200{
    .name = "h200",
    .description = "NVIDIA H200 141 GB, PCIe 5.0 x16",
    .gpu_name = "NVIDIA H200 (simulated)",
    .memory = 141000000000ull / (2u << 20) * (2u << 20),
    .major = 9,
    .minor = 0,
    .multiprocessors = 132,
    .clock_khz = 1980000,
    .fp32 = 67e3,
    .tensor = 989e3,
    .memory_gbps = 4800,
    .fp32_sustained = 0.79,
    .tensor_sustained = 0.80,
    .memory_sustained = 0.88,
    .link = kPcie5,
};

// H100 SXM data sheet: 67 TFLOPS FP32, 989 TFLOPS BF16 dense, 3.35 TB/s; white paper and sustained
// as kH200's. Measured on one with driver 580.159.04 (benchmarks/results,
// acceptance-nvidia-h100-80gb-hbm3-20261127-022709.json; docs/research/gpu.md): memory, prefetches
// each way, fault batches, launches and their queue, the wait for a value. A prefetch to the host
// is what the kernel module takes to map the host's pages: copies reach 54.9 GB/s. The driver's own
// eviction maps none; it is taken to be the handling and a copy at that rate, and was not measured,
// nor was what batches take without the density prefetcher. both_ways is such that as much each way
// at once takes as long as it did by two threads: what comes is slowed down most.
constexpr Machine h100() {
  constexpr double kToDevice = 48.471, kToHost = 14.919, kCopyToHost = 54.899;
  Card card = kH200;
  card.name = "h100-80gb";
  card.description =
      "NVIDIA H100 80 GB HBM3, PCIe 5.0 x16: link, faults and launches as measured, to the host as "
      "prefetches do it";
  card.gpu_name = "NVIDIA H100 80GB HBM3 (simulated)";
  card.memory = 85017493504ull / (2u << 20) * (2u << 20);
  card.memory_gbps = 3350;
  card.link = kToDevice;
  Machine made = machine(card);
  made.d2h_gbps = kToHost;
  made.both_ways = 2.6;
  made.fault_batch_ns = 51250;
  made.fault_ns_per_byte = 0.16447;
  made.eviction_ns_per_block = eviction(kCopyToHost);
  made.launch_ns = 3589;
  made.launch_queue = 1020;
  made.value_wait_ns = 1900;
  return made;
}

// The A100 of G10's simulator (MICRO'23; github.com/platformxlab/G10, src/configs): 40 GiB, 15.754
// GB/s each way, 45 us to handle a far fault, 5 us for a transfer. A fault's pages cost what the
// link takes, evictions go the other way at the same time: its base UVM moves 186 GB each way in
// the 12.4 s that BERT (batch 256) waits in an iteration, 15.0 GB/s
// (example_results/overall_traffic, overall_performance). The same with and without the density
// prefetcher, which it does not know. The card is as kA100.
constexpr Machine g10() {
  constexpr double kLink = 15.754;
  Card card = kA100;
  card.name = "a100-40gb-g10";
  card.description =
      "NVIDIA A100 40 GB as in G10's simulator: 15.754 GB/s each way, 45 us a far fault";
  card.gpu_name = "NVIDIA A100-PCIE-40GB (simulated as by G10)";
  card.link = kLink;
  Machine made = machine(card);
  made.copy_latency_ns = 5e3;
  made.fault_batch_ns = made.fault_batch_no_prefetcher_ns = 45e3;
  made.fault_ns_per_byte = made.fault_ns_per_byte_no_prefetcher = 1 / kLink;
  made.eviction_ns_per_block = 0;
  return made;
}

// The same with the rest of that configuration: 128 GiB of host memory and an SSD behind it, 3.2
// GB/s each way, 12 us to read and 16 us to write; with the host full, what leaves the card goes to
// the SSD, and nothing else does (src/simulationEvents.cc). Its simulator has no buffers; with 64
// MiB, 32 UM blocks, each way the disk runs at its rate while it is asked for enough [?].
constexpr Machine g10_ssd() {
  Machine made = g10();
  made.name = "a100-40gb-g10-ssd";
  made.description =
      "NVIDIA A100 40 GB as in G10's simulator, with its 128 GiB of host memory and an SSD of 3.2 "
      "GB/s behind it";
  made.host_memory_bytes = gib(128);
  made.disk_read_gbps = made.disk_write_gbps = 3.2;
  made.disk_read_latency_ns = 12e3;
  made.disk_write_latency_ns = 16e3;
  made.disk_buffer_bytes = 64ull << 20;
  made.host_keeps = 1;
  return made;
}

constexpr std::array kMachines{machine(kV100_16),
                               machine(v100_32()),
                               machine(kRtx4090),
                               machine(kA100),
                               g10(),
                               g10_ssd(),
                               h100(),
                               machine(kH200)};

}  // namespace

std::span<const Machine> machines() noexcept { return kMachines; }

const Machine* find_machine(std::string_view name) noexcept {
  const auto found = std::find_if(kMachines.begin(), kMachines.end(),
                                  [&](const Machine& m) { return m.name == name; });
  return found == kMachines.end() ? nullptr : &*found;
}

}  // namespace deepum::um_model
