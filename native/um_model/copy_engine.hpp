// One device's copy engine for one direction: operations first in, first out, a migration block by
// block.
#pragma once

#include <algorithm>
#include <deque>

#include "faults.hpp"
#include "timeline.hpp"
#include "work.hpp"

namespace deepum::um_model {

class CopyEngine final : public Actor {
 public:
  CopyEngine(int device, bool to_device, Timeline& timeline, BlockTable& blocks,
             Residency& residency, FaultService& faults)
      : device_(device),
        to_device_(to_device),
        timeline_(timeline),
        blocks_(blocks),
        residency_(residency),
        faults_(faults) {}

  void submit(Op& op);  // BulkCopy or Migration
  void wake(double now, std::uint64_t token) override;
  void settled(const Block& block);

 private:
  struct Target {
    Block* block;
    Regions regions;
  };
  struct Queued {
    Op* op;
    double since;  // ns
  };
  // What the block costs now: negative, it must wait for another transfer of the block; 0, nothing
  // to do (any more).
  double begin_arrival(Target target, double now);
  double begin_leaving(Target target, double now);
  void run(double now);
  void begin(const Queued& next);
  double bulk_ns(const BulkCopy& copy, double now);
  // No earlier than this a transfer that begins now has the link.
  double earliest(double now) { return std::max(now, link().free_from); }
  bool next_target(const Migration& migration, Target& target);
  void transfer(double now, double ns, double wait = 0);  // wait: of ns, until it can begin
  void tell(double start, double end) const;
  deepum_activity_kind kind() const;  // of the operation at hand
  void expect(double time) { timeline_.at(time, *this, ++expected_); }
  // Of that many bytes over the link, while the other direction is as busy as it is now.
  double transfer_ns(std::uint64_t bytes);
  Link& link() { return to_device_ ? residency_.to_device(device_) : residency_.to_cpu(device_); }

  const int device_;
  const bool to_device_;
  Timeline& timeline_;
  BlockTable& blocks_;
  Residency& residency_;
  FaultService& faults_;
  std::deque<Queued> queue_;

  Op* current_ = nullptr;
  bool running_ = false;  // inside run: what is submitted meanwhile waits
  double since_ = 0;      // when the operation came to the queue
  double wait_ = 0;       // ns of the transfer to come, for the disk
  bool latency_paid_ = false;
  std::size_t range_ = 0;  // where the migration has got to
  std::uint64_t address_ = 0;
  Target held_{};  // next in line but waiting for another transfer of its own
  Block* moving_ = nullptr;
  std::uint32_t moving_generation_ = 0;
  bool transferring_ = false;
  std::uint64_t bytes_ = 0;  // of the transfer
  std::uint64_t expected_ = 0;
};

}  // namespace deepum::um_model
