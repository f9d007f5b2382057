#include "compute_engine.hpp"

#include <algorithm>

namespace deepum::um_model {
namespace {

constexpr std::uint64_t kLaunchesPerRandomEviction = 8;  // on average

std::uint64_t next_random(std::uint64_t& state) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1dull;
}

}  // namespace

// Tiles run in waves of one for each multiprocessor, and the last wave takes as long as a full one
// (wave quantisation: NVIDIA, "Matrix Multiplication Background User's Guide", Dimension
// Quantization Effects).
double kernel_ns(const Machine& machine, const Kernel& kernel) {
  if (kernel.measured_ns > 0) {
    return kernel.measured_ns;
  }
  double bytes = static_cast<double>(kernel.device_bytes);
  for (const Access& access : kernel.accesses) {
    bytes += static_cast<double>(access.range.bytes) * (access.read && access.write ? 2 : 1);
  }
  const double peak = kernel.matrix_units ? machine.tensor_gflops : machine.fp32_gflops;
  const double sustained = kernel.matrix_units ? machine.tensor_sustained : machine.fp32_sustained;
  double arithmetic =
      kernel.flops /
      (peak * (kernel.peak_fraction > 0 ? std::min(kernel.peak_fraction, sustained) : sustained));
  if (kernel.tiles != 0) {
    const auto wave = static_cast<std::uint64_t>(machine.multiprocessors);
    const std::uint64_t waves = (kernel.tiles + wave - 1) / wave;
    arithmetic *= static_cast<double>(waves * wave) / static_cast<double>(kernel.tiles);
  }
  return std::max({arithmetic, bytes / (machine.memory_gbps * machine.memory_sustained),
                   machine.min_kernel_ns});
}

ComputeEngine::ComputeEngine(int device, const Machine& machine, const Options& options,
                             Timeline& timeline, BlockTable& blocks, Residency& residency,
                             FaultService& faults)
    : device_(device),
      machine_(machine),
      timeline_(timeline),
      blocks_(blocks),
      residency_(residency),
      faults_(faults),
      launch_(static_cast<std::uint64_t>(device) << 48),
      random_(options.random_eviction_seed == 0
                  ? 0
                  : options.random_eviction_seed + static_cast<std::uint64_t>(device)) {}

void ComputeEngine::submit(Op& op) {
  ready_.push_back(&op);
  if (running_ == nullptr) {
    start(timeline_.now());
  }
}

void ComputeEngine::start(double now) {
  running_ = ready_.front();
  ready_.pop_front();
  const KernelWork& work = std::get<KernelWork>(running_->work);
  blocks_.split(work.kernel.accesses, pieces_,
                residency_.losses.kernel_begins(work.kernel.unknown));
  sweep_ = Sweep(blocks_, pieces_);
  for (const Range& range : work.kernel.perhaps_written) {
    each_block(blocks_, range, true, [&](Block& block, Regions regions, std::uint64_t) {
      residency_.rewritten(block, regions);
    });
  }
  compute_ = kernel_ns(machine_, work.kernel);
  const std::uint64_t steps = Sweep::steps(pieces_);
  step_ = steps == 0 ? 0 : compute_ / static_cast<double>(steps);
  base_ = started_ = now;
  index_ = 0;
  ++launch_;
  phase_ = Phase::sweeping;
  if (random_ != 0 && next_random(random_) % kLaunchesPerRandomEviction == 0) {
    residency_.evict_random(device_, next_random(random_), now);
  }
  expect(now);
}

void ComputeEngine::wake(double now, std::uint64_t token) {
  if (token != expected_ || running_ == nullptr) {
    return;
  }
  if (phase_ == Phase::sweeping) {
    advance(now);
    return;
  }
  Op& op = *running_;
  running_ = nullptr;
  residency_.need(device_, nullptr);
  residency_.losses.kernel_ended(std::get<KernelWork>(op.work).kernel.unknown);
  if (std::get<KernelWork>(op.work).counted) {
    Counters& counters = residency_.counters(device_);
    ++counters.kernels;
    counters.compute_ns += compute_;
    counters.stall_ns += std::max(now - started_ - compute_, 0.0);
  }
  if (residency_.activities != nullptr) {
    const KernelWork& work = std::get<KernelWork>(op.work);
    const deepum_activity_kind kind = work.counted ? DEEPUM_ACTIVITY_KERNEL : DEEPUM_ACTIVITY_FILL;
    deepum_activity made =
        activity(kind, device_, started_, now, 0, 1, residency_.resident_bytes(device_));
    made.tag = work.kernel.tag;
    made.stall_ns = std::max(now - started_ - compute_, 0.0);
    residency_.activities->add(made);
  }
  complete(op, now);
  if (running_ == nullptr && !ready_.empty()) {
    start(now);
  }
}

void ComputeEngine::settled(const Block& block) {
  if (waiting_for_ == nullptr || (waiting_for_ != &block && !waiting_for_space_)) {
    return;
  }
  waiting_for_ = nullptr;
  expect(timeline_.now());
}

void ComputeEngine::advance(double now) {
  Counters& counters = residency_.counters(device_);
  const bool counted = std::get<KernelWork>(running_->work).counted;
  const std::uint64_t launch = counted ? launch_ : 0;
  if (waited_) {
    base_ = std::max(base_, now - static_cast<double>(index_) * step_);
  }
  waited_ = false;
  const Block* last = nullptr;
  double limit = timeline_.limit();
  for (; !sweep_.done(); sweep_.next(), ++index_) {
    const double due = base_ + static_cast<double>(index_) * step_;
    if (due > limit) {
      if (last != nullptr) {
        residency_.need(device_, last);
      }
      expect(due);
      return;
    }
    Block* const block = sweep_.block();
    if (block != nullptr && block->device == device_) {
      const Regions regions = sweep_.regions();
      if ((regions & ~block->on_device) == 0 &&
          (regions & (block->on_cpu | block->lost | block->discarded)) == 0) {
        faults_.note(device_, counters, *block, regions, 0, launch);
        last = block;
        continue;
      }
    }
    if (last != nullptr) {
      residency_.need(device_, last);
    }
    timeline_.advance_to(due);
    const FaultService::Outcome outcome = faults_.access(device_, due, sweep_, launch, step_, true);
    if (outcome.wait != FaultService::Outcome::no) {
      residency_.need(device_, nullptr);
      waiting_for_ = block;
      waiting_for_space_ = outcome.wait == FaultService::Outcome::for_space;
      waited_ = true;
      return;
    }
    last = block;
    base_ += outcome.stall;
    limit = timeline_.limit();
  }
  if (last != nullptr) {
    residency_.need(device_, last);
  }
  phase_ = Phase::finishing;
  expect(base_ + compute_);
}

}  // namespace deepum::um_model
