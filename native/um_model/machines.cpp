// Machine presets. Every figure has its source: [F] docs/um-model.md's table of published measurements, [S] the vendor's data
// sheet, [E] an estimate, to be replaced by a measurement.
#include <array>

#include "machine.hpp"

namespace deepum::um_model {
namespace {

constexpr std::uint64_t GiB = 1ull << 30;

// Figures of the driver's fault path: Titan V, PCIe 3.0, uvm-eval [F]; taken for every GPU, but for the link's share.
// A batch costs 70 us + 0.21 us/KB with the density prefetcher, 40 us + 1.24 us/KB without; an eviction inside a batch 185 us.
Machine pcie3() {
  Machine m{};
  m.h2d_gbps = m.d2h_gbps = 12.9;  // pinned copies, PCIe 3.0 x16 [F]
  m.copy_latency_ns = 2000;        // a 4 KB copy takes 2 us [F]
  m.fault_batch_ns = 70e3;
  m.fault_ns_per_byte = 210.0 / 1024;
  m.fault_batch_no_prefetcher_ns = 40e3;
  m.fault_ns_per_byte_no_prefetcher = 1240.0 / 1024;
  m.faults_per_batch = 256;  // nvidia-uvm's default batch [F]
  m.eviction_ns_per_block = 185e3;
  m.min_kernel_ns = 2000;        // [E] an empty kernel
  m.launch_ns = 5000;            // [E] a framework's host cost per launch, not the bare call's 2 us
  m.launch_queue = 1024;         // [E]
  m.migration_call_ns = 5000;    // [E] a prefetch call that is deferred
  m.decision_latency_ns = 20e3;  // [E] two thread hand-overs and one look-up
  return m;
}

// The link's share of the driver's costs shrinks with a faster link: 163 of the 185 us of an eviction, and 2 MiB / 12.9 GB/s of
// the per-byte cost of a batch (0.076 of 0.21 us/KB), are the copy [F].
Machine on_link(double gbps) {
  Machine m = pcie3();
  const double before = 1 / m.h2d_gbps;
  const double after = 1 / gbps;
  m.h2d_gbps = m.d2h_gbps = gbps;
  m.fault_ns_per_byte += after - before;
  m.fault_ns_per_byte_no_prefetcher += after - before;
  m.eviction_ns_per_block += 163e3 * (after / before - 1);
  return m;
}

Machine v100(std::string_view name, std::string_view description, std::uint64_t memory) {
  Machine m = pcie3();
  m.name = name;
  m.description = description;
  m.gpu_name = memory > 16 * GiB ? "Simulated Tesla V100-PCIE-32GB" : "Simulated Tesla V100-PCIE-16GB";
  m.memory_bytes = memory;
  m.presented_major = 8, m.presented_minor = 0;  // PyTorch's CUDA 13 builds carry no code for sm_70
  m.multiprocessors = 80;                        // [S] as the next lines: V100 PCIe data sheet
  m.clock_khz = 1380000;
  m.fp32_gflops = 14000, m.tensor_gflops = 112000;
  m.memory_gbps = 900;
  return m;
}

Machine rtx4090() {
  Machine m = on_link(25);  // PCIe 4.0 x16 pinned, about 25 GB/s [F]
  m.name = "rtx4090";
  m.description = "NVIDIA GeForce RTX 4090 24 GB, PCIe 4.0 x16";
  m.gpu_name = "Simulated NVIDIA GeForce RTX 4090";
  m.memory_bytes = 24 * GiB;
  m.presented_major = 8, m.presented_minor = 9;
  m.multiprocessors = 128;  // [S] as the next lines: Ada architecture white paper
  m.clock_khz = 2520000;
  m.fp32_gflops = 82600, m.tensor_gflops = 165200;
  m.memory_gbps = 1008;
  return m;
}

Machine a100() {
  Machine m = on_link(15.754);  // the link of the G10 traces: PCIe 3.0 x16 as its paper counts it [F]
  m.name = "a100-40gb";
  m.description = "NVIDIA A100 40 GB, link of 15.754 GB/s each way, 45 us faults (the machine of the G10 traces)";
  m.gpu_name = "Simulated NVIDIA A100-PCIE-40GB";
  m.memory_bytes = 40 * GiB;
  m.presented_major = 8, m.presented_minor = 0;
  m.fault_batch_ns = 45e3;  // far fault of G10's simulator [F]
  m.multiprocessors = 108;  // [S] as the next lines: A100 data sheet
  m.clock_khz = 1410000;
  m.fp32_gflops = 19500, m.tensor_gflops = 312000;
  m.memory_gbps = 1555;
  return m;
}

Machine h200() {
  Machine m = on_link(52);  // PCIe 5.0 x16 pinned, about 52 GB/s [F]
  m.name = "h200";
  m.description = "NVIDIA H200 141 GB, PCIe 5.0 x16";
  m.gpu_name = "Simulated NVIDIA H200";
  m.memory_bytes = 141ull * 1000 * 1000 * 1000 / (2 << 20) * (2 << 20);
  m.presented_major = 9, m.presented_minor = 0;
  m.multiprocessors = 132;  // [S] as the next lines: H200 data sheet
  m.clock_khz = 1980000;
  m.fp32_gflops = 67000, m.tensor_gflops = 989000;
  m.memory_gbps = 4800;
  return m;
}

}  // namespace

std::span<const Machine> machines() noexcept {
  static const std::array<Machine, 5> presets = {
      v100("v100-16gb", "NVIDIA V100 16 GB, PCIe 3.0 x16; presents compute capability 8.0", 16 * GiB),
      v100("v100-32gb", "NVIDIA V100 32 GB, PCIe 3.0 x16; presents compute capability 8.0", 32 * GiB), rtx4090(), a100(), h200()};
  return presets;
}

const Machine* find_machine(std::string_view name) noexcept {
  for (const Machine& machine : machines()) {
    if (machine.name == name) {
      return &machine;
    }
  }
  return nullptr;
}

}  // namespace deepum::um_model
