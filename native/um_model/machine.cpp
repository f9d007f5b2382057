// Machine presets. Every figure has its source beside it; [?] marks one that nobody has measured for this project.
#include "machine.hpp"

#include <algorithm>
#include <array>

namespace deepum::um_model {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kBlock = 2.0 * 1024 * 1024;

constexpr std::uint64_t gib(double n) { return static_cast<std::uint64_t>(n * kGiB); }

// Fault service as measured on a Titan V behind PCIe 3.0 x16 (uvm-eval, figures for the fault batch with and without prefetching,
// +-10 %): 70 us + 0.21 us/KB with the density prefetcher, 40 us + 1.24 us/KB without; 185 us for an eviction inside a batch, of which
// 163 us are the copy. Bulk copies of the same machine: 12.9 GB/s, 4 KB in 2 us, 1 MB in 83 us.
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
constexpr int kFaultsPerBatch = 256;       // uvm_perf_fault_batch_count's default (open-gpu-kernel-modules)
constexpr double kHostCopy = 10;           // one thread's memcpy, GB/s [?]
constexpr double kMinKernel = 2e3;         // shortest kernel [?]
constexpr double kLaunch = 3.8e3;          // back-to-back launches of short kernels (NVIDIA blog, "Getting Started with CUDA Graphs", V100)
constexpr int kLaunchQueue = 1024;         // [?]
constexpr double kMigrationCall = 10e3;    // cuMemPrefetchAsync and the like: an ioctl [?]
constexpr double kHostFunction = 10e3;     // cuLaunchHostFunc: round trip to a thread of the driver's [?]
constexpr double kDecisionLatency = 20e3;  // ring, daemon, mover [?]

constexpr Machine machine(std::string_view name, std::string_view description, std::string_view gpu_name, std::uint64_t memory, int major,
                          int minor, int multiprocessors, int clock_khz, double fp32, double tensor, double memory_gbps, double link) {
  const bool measured = link == kPcie3;
  return {
      .name = name,
      .description = description,
      .gpu_name = gpu_name,
      .memory_bytes = memory,
      .presented_major = major,
      .presented_minor = minor,
      .multiprocessors = multiprocessors,
      .clock_khz = clock_khz,
      .fp32_gflops = fp32,
      .tensor_gflops = tensor,
      .memory_gbps = memory_gbps,
      .h2d_gbps = link,
      .d2h_gbps = link,
      .copy_latency_ns = kCopyLatency,
      .host_gbps = kHostCopy,
      .fault_batch_ns = kBatch,
      .fault_ns_per_byte = measured ? kPerByte : per_byte(kPerByte, link),
      .fault_ns_per_byte_no_prefetcher = measured ? kPerByteNoPrefetcher : per_byte(kPerByteNoPrefetcher, link),
      .fault_batch_no_prefetcher_ns = kBatchNoPrefetcher,
      .faults_per_batch = kFaultsPerBatch,
      .eviction_ns_per_block = measured ? kEviction : eviction(link),
      .min_kernel_ns = kMinKernel,
      .launch_ns = kLaunch,
      .launch_queue = kLaunchQueue,
      .migration_call_ns = kMigrationCall,
      .host_function_ns = kHostFunction,
      .decision_latency_ns = kDecisionLatency,
  };
}

// Memory, multiprocessors, clock and peak rates: NVIDIA's data sheet or white paper of the card, dense rates, memory as sold.
constexpr std::array kMachines{
    // Tesla V100 PCIe data sheet: 14 TFLOPS FP32, 112 TFLOPS tensor, 900 GB/s; white paper: 80 SMs, 1380 MHz boost. PyTorch's CUDA 13
    // builds
    // carry no code for compute capability 7.0, so the card presents itself as 8.0; its speed is the V100's.
    machine("v100-16gb", "NVIDIA V100 16 GB, PCIe 3.0 x16 (presents compute capability 8.0, with a V100's speed)",
            "Tesla V100-PCIE-16GB (simulated)", gib(16), 8, 0, 80, 1380000, 14e3, 112e3, 900, kPcie3),
    machine("v100-32gb", "NVIDIA V100 32 GB, PCIe 3.0 x16 (presents compute capability 8.0, with a V100's speed)",
            "Tesla V100-PCIE-32GB (simulated)", gib(32), 8, 0, 80, 1380000, 14e3, 112e3, 900, kPcie3),
    // Ada white paper, appendix A: 128 SMs, 2520 MHz boost, 82.6 TFLOPS FP32, 165.2 TFLOPS FP16 with FP32 accumulate, 1008 GB/s, 24 GB.
    machine("rtx4090", "NVIDIA GeForce RTX 4090 24 GB, PCIe 4.0 x16", "NVIDIA GeForce RTX 4090 (simulated)", gib(24), 8, 9, 128, 2520000,
            82.6e3, 165.2e3, 1008, kPcie4),
    // A100 white paper and data sheet: 108 SMs, 1410 MHz, 19.5 TFLOPS FP32, 312 TFLOPS FP16/BF16, 1555 GB/s, 40 GB.
    machine("a100-40gb", "NVIDIA A100 40 GB, PCIe 4.0 x16", "NVIDIA A100-PCIE-40GB (simulated)", gib(40), 8, 0, 108, 1410000, 19.5e3, 312e3,
            1555, kPcie4),
    // H200 SXM data sheet: 67 TFLOPS FP32, 989 TFLOPS BF16 dense, 4.8 TB/s, 141 GB (10^9); H100 white paper: 132 SMs; boost clock 1980 MHz.
    machine("h200", "NVIDIA H200 141 GB, PCIe 5.0 x16", "NVIDIA H200 (simulated)", 141000000000ull / (2u << 20) * (2u << 20), 9, 0, 132,
            1980000, 67e3, 989e3, 4800, kPcie5),
};

}  // namespace

std::span<const Machine> machines() noexcept { return kMachines; }

const Machine* find_machine(std::string_view name) noexcept {
  const auto found = std::find_if(kMachines.begin(), kMachines.end(), [&](const Machine& m) { return m.name == name; });
  return found == kMachines.end() ? nullptr : &*found;
}

}  // namespace deepum::um_model
