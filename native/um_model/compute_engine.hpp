// One device's kernels: one at a time, in the order in which they become ready, block by block in
// virtual time.
#pragma once

#include <deque>
#include <vector>

#include "faults.hpp"
#include "timeline.hpp"
#include "work.hpp"

namespace deepum::um_model {

class ComputeEngine final : public Actor {
 public:
  ComputeEngine(int device, const Machine& machine, const Options& options, Timeline& timeline,
                BlockTable& blocks, Residency& residency, FaultService& faults);

  void submit(Op& op);
  void wake(double now, std::uint64_t token) override;
  void settled(const Block& block);  // a transfer of the block ended
  bool idle() const { return running_ == nullptr; }

 private:
  enum class Phase { sweeping, finishing };
  void start(double now);
  void advance(double now);
  void expect(double time) { timeline_.at(time, *this, ++expected_); }

  const int device_;
  const Machine& machine_;
  Timeline& timeline_;
  BlockTable& blocks_;
  Residency& residency_;
  FaultService& faults_;
  std::deque<Op*> ready_;

  // The running kernel: step i of the sweep is due at base_ + i * step_; a stall moves base_.
  Op* running_ = nullptr;
  Phase phase_ = Phase::sweeping;
  std::vector<Piece> pieces_;
  Sweep sweep_;
  double base_ = 0, step_ = 0, compute_ = 0, started_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t launch_ = 0;
  const Block* waiting_for_ = nullptr;
  bool waiting_for_space_ = false;  // any other will do too
  bool waited_ = false;
  std::uint64_t expected_ = 0;
  std::uint64_t random_;  // state of the random evictions, 0: none
};

}  // namespace deepum::um_model
