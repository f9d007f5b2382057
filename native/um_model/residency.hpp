// Who holds which block: chunks of device memory, content on its way, discards.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "activities.hpp"
#include "block_table.hpp"
#include "counters.hpp"
#include "eviction_order.hpp"
#include "host_memory.hpp"
#include "link.hpp"
#include "losses.hpp"
#include "machine.hpp"
#include "options.hpp"

namespace deepum::um_model {

// What making room cost.
struct Evicted {
  std::uint64_t blocks = 0;
  std::uint64_t copied = 0;  // bytes
  double ns = 0;             // one after the other, copies included
};

class Residency {
 public:
  Residency(const Machine& machine, const Options& options);

  // Device side.
  std::uint64_t capacity(int device) const;  // chunks
  std::uint64_t free_bytes(int device) const;
  std::uint64_t memory_bytes(int device) const { return at(device).memory; }
  std::uint64_t plain_bytes(int device) const { return at(device).plain_bytes; }
  void take_plain(int device, std::uint64_t bytes) { at(device).plain_bytes += bytes; }
  void give_plain(int device, std::uint64_t bytes) { at(device).plain_bytes -= bytes; }
  bool overfull(int device) const { return at(device).chunks > capacity(device); }

  // Evicts until `chunks` more fit; never `keep`, nor what fault batch `batch` (not 0) brought.
  // False if there is nobody to evict: what was evicted until then stays evicted. Copies take their
  // share of the link from `now` on.
  bool make_room(int device, std::uint64_t chunks, double now, std::uint64_t batch,
                 Evicted& evicted);
  // Gives the block a chunk of the device, making room. A chunk that it has elsewhere is left
  // first, its content copied to the CPU.
  bool take_chunk(int device, Block& block, double now, std::uint64_t batch, Evicted& evicted);
  // As the driver does it: everything resident is copied, unless it was discarded or the CPU has
  // it.
  void evict(Block& block, double now, Evicted& evicted);
  void evict_random(int device, std::uint64_t random, double now);
  // The block that a kernel of the device needs right now: no victim if there is another.
  void need(int device, const Block* block) { at(device).needed = block; }

  // Content of regions comes to the device that holds the chunk (end of a transfer, or population);
  // newest in the eviction order. duplicate: what the CPU has stays valid.
  void place(Block& block, Regions regions, bool duplicate);
  // A migration, even of nothing, makes it the newest.
  void renew(Block& block) {
    if (block.in_order) {
      order_of(block).renew(block);
    }
  }
  // A transfer begins: not evictable until it ends. Leaving regions are unmapped.
  void begin_arrival(Block& block, Regions regions);
  void begin_leaving(Block& block, Regions regions);
  void end_arrival(Block& block);
  void end_leaving(Block& block);
  // Ends a transfer in progress at once, whatever it has left to do; the engine that carries it
  // sees the new generation.
  void settle(Block& block);

  // Its number among the discards.
  void discard(Block& block, Regions regions, std::uint64_t number);
  void rewritten(Block& block, Regions regions);  // a write ends a discard
  // A prefetch does too, but the content is still lost.
  void undiscard(Block& block, Regions regions);
  // Off the device without a copy.
  void drop(Block& block, Regions regions);
  // Unmapped: no content anywhere.
  void forget(Block& block);

  // The host's side. Content comes there, or is used there, where it is made if it is nowhere; ns:
  // when that can be, no earlier than `at`.
  double to_host(Block& block, Regions regions, double at) {
    block.on_cpu |= regions;
    return host_ != nullptr ? host_->enter(block, regions, at) : at;
  }
  double use_on_host(Block& block, Regions regions, bool write, double at) {
    const Regions fresh = regions & ~block.on_cpu;
    block.on_cpu |= fresh;
    return host_ != nullptr
               ? host_->use(block, regions & ~fresh, write, host_->enter(block, fresh, at))
               : at;
  }
  void off_host(Block& block, Regions regions) {
    block.on_cpu &= ~regions;
    if (host_ != nullptr) {
      host_->leave(block, regions);
    }
  }
  HostMemory* host() { return host_.get(); }  // null: it has no size
  const HostMemory* host() const { return host_.get(); }

  Counters& counters(int device) { return at(device).counters; }
  const Counters& counters(int device) const { return at(device).counters; }
  Link& to_device(int device) { return at(device).h2d; }
  Link& to_cpu(int device) { return at(device).d2h; }
  const Machine& machine() const { return machine_; }
  int devices() const { return static_cast<int>(devices_.size()); }
  std::uint64_t resident_bytes(int device) const { return at(device).chunks * kBlockBytes; }
  std::uint64_t peak_total() const { return peak_total_; }

  Losses losses;
  // Called when a transfer of a block ended, or could not be made.
  std::function<void(const Block&)> on_settled;
  Activities* activities = nullptr;  // told of what happens, if kept

 private:
  struct Device {
    std::uint64_t memory = 0, plain_bytes = 0, chunks = 0;
    EvictionOrder order;
    const Block* needed = nullptr;
    Link h2d, d2h;
    Counters counters{};
  };
  Device& at(int device) { return devices_[static_cast<std::size_t>(device)]; }
  const Device& at(int device) const { return devices_[static_cast<std::size_t>(device)]; }
  EvictionOrder& order_of(const Block& block) { return at(block.device).order; }
  void release_chunk(Block& block);

  const Machine& machine_;
  std::vector<Device> devices_;
  std::unique_ptr<HostMemory> host_;
  std::uint64_t chunks_total_ = 0, peak_total_ = 0;
};

}  // namespace deepum::um_model
