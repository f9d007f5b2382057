// The host's memory as managed content finds it, where it has a size: blocks in the order of their
// last use, pinned memory beside them, and a disk behind it, if there is one. Without a disk
// nothing is ever pushed out, and the peak tells what would have been needed.
//
// Block::on_cpu says what the host's side has. Of that, each region is in memory, on the disk, or
// both: what was read back into memory and not written since need not be written again.
#pragma once

#include <list>
#include <unordered_map>

#include "block_table.hpp"
#include "machine.hpp"

namespace deepum::um_model {

class HostMemory {
 public:
  HostMemory(const Machine& machine, std::uint64_t bytes);

  // All of these take the time `at` (ns) at which something is to happen, and give the time at
  // which it can, no earlier.

  // New content of regions: from a device, or made here. What was used longest ago makes room for
  // it.
  double enter(Block& block, Regions regions, double at);
  // What is there is used in place: read from the disk into memory if it has to be, and changed if
  // `write`.
  double use(Block& block, Regions regions, bool write, double at);
  // What is there goes to a device: from the disk through a buffer, so that it pushes nobody out.
  // issued: when the request was known.
  double send(Block& block, Regions regions, double issued, double at);
  // Content that is here no more: on a device alone, dead or unmapped.
  void leave(const Block& block, Regions regions);

  // Memory that stays: pinned by the program. False: there is no room for it before transfers have
  // ended; without a disk there always is.
  bool has_room_to_pin(std::uint64_t bytes, double at);
  void pin(std::uint64_t bytes);
  void unpin(std::uint64_t bytes) { pinned_ -= bytes; }
  // On its way to a device: not pushed out while room is made for it there. nullptr: none.
  void hold(const Block* block) { held_ = block; }

  struct Place {
    Regions in_memory, on_disk;
  };
  Place place(const Block& block) const;
  bool has_disk() const { return read_.gbps > 0; }
  std::uint64_t size() const { return size_; }
  std::uint64_t pinned() const { return pinned_; }
  std::uint64_t used() const { return used_ + pinned_; }
  std::uint64_t peak() const { return peak_; }
  std::uint64_t bytes_read() const { return read_.bytes; }
  std::uint64_t bytes_written() const { return write_.bytes; }

 private:
  // One direction of the disk: requests one after the other, each `latency` longer than it occupies
  // the disk. ahead: ns that the disk may be ahead of reads that are waited for, or behind writes
  // that are not.
  struct Channel {
    double gbps, latency, ahead, free_from = 0;
    std::uint64_t bytes = 0;
    double run(double from, std::uint64_t count) {  // when it is over
      free_from = (from > free_from ? from : free_from) + static_cast<double>(count) / gbps;
      bytes += count;
      return free_from + latency;
    }
  };
  struct Entry {
    Regions in_memory = 0, on_disk = 0;
    double written = 0;  // ns, when the disk has it
    std::list<Block*>::iterator order{};
  };

  void push_out_for(std::uint64_t bytes, const Block* keep, double& at);
  bool make_room(std::uint64_t bytes, const Block* keep, double& at);  // false: there is none
  double push_out(Block& block, double at);
  // When the disk is no further behind than it may be.
  double write(Entry& entry, Regions regions, double at);
  void take(Block& block, Entry& entry, Regions regions);
  void give(Entry& entry, Regions regions);
  void renew(const Entry& entry) {
    if (entry.in_memory != 0) {
      order_.splice(order_.end(), order_, entry.order);
    }
  }

  const std::uint64_t size_;
  const bool keeps_;  // what is here stays, what comes to a full host goes to the disk
  Channel read_, write_;
  std::uint64_t used_ = 0, pinned_ = 0, peak_ = 0;
  const Block* held_ = nullptr;
  std::unordered_map<const Block*, Entry> entries_;  // blocks never move
  // With something in memory, longest unused first.
  std::list<Block*> order_;
};

}  // namespace deepum::um_model
