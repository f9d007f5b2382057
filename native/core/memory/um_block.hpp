// One UM block (2 MiB) of a live allocation. Its state lies together for locality; each part has
// one writer, which is named behind it.
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "memory/block_use.hpp"
#include "records.h"

namespace deepum::core {

inline constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;

// The list of an eviction policy that a resident block is in.
enum class BlockPlace : std::uint8_t {
  kEvictable,       // no launch is known to need it
  kEvictableClean,  // likewise, and the host holds the same content
  kCoolingDown,     // used so lately that its space would come late
  kExpected,        // by a launch still to come
  kExpectedClean,   // likewise, and the host holds the same content
  kDead,            // its content is not needed: it leaves before all others, without a copy
  kPinned           // the program prefers it on the device: it leaves behind all others
};

struct UmBlock {
  // Set once, by AddressSpace.
  struct Key {
    std::uint32_t slot = 0;
    std::uint32_t index = 0;       // in the slot
    std::uint32_t generation = 0;  // of the slot's allocation
    std::uint16_t device = 0;      // ordinal
    bool of_program = false;       // the program asked for managed memory itself
  } key;

  // Written by AddressSpace and, where a block gains or loses its content, by Placer and
  // Invalidation.
  struct Content {
    bool populated = false;  // the block has content somewhere
    bool dead = false;       // all of it is inactive PyTorch memory
    bool fresh = true;       // nothing that is needed was written to it yet
    EventSequence died = 0;  // the report that made it dead
    LaunchIndex filled = 0;  // launch at which it got the content that it has, or the first of it
  } content;

  // Written by ResidencyBelief.
  struct Residency {
    bool resident = false;       // on the device once all commands given so far are carried out
    bool clean = false;          // the host holds the same content
    bool faulted = false;        // it was seen to fault,
    bool write_faulted = false;  // by a write at least once
    LaunchIndex confirmed = 0;   // launch at which it was last known to be there; 0: doubtful
    std::uint64_t fetches_at_confirmation =
        0;                       // blocks that had been fetched to its device by then
    std::uint64_t migrated = 0;  // its device's count of migrations when it arrived
  } residency;

  // The latest moves, written by CommandStream, and the uses that moves wait for, written by
  // Placer.
  struct Moves {
    MoveId in = 0;
    MoveId out = 0;
    MoveId discard = 0;
    MoveId fetch = 0;             // the move that made it resident; a prefetch out of doubt is none
    EventSequence last_use = 0;   // launch that used it last
    std::uint64_t streams = 0;    // bit i: used on stream i since it was last moved
    EventSequence first_use = 0;  // first launch that used it since it was last fetched; 0: none
    std::uint32_t first_stream = 0;
    LaunchIndex evicted_for = 0;  // launch that got its space when it was last evicted
    bool out_keeps = false;       // `out` was a write-back: the device kept its copy
    std::uint8_t in_by = DEEPUM_COMMAND_PREFETCH;  // kind of the command that brought it last
    std::uint64_t claim = 0;                       // the placement that claimed it last
  } moves;

  // An intrusive hook of the device's EvictionPolicy.
  struct Order {
    UmBlock* before = nullptr;
    UmBlock* after = nullptr;
    BlockPlace place = BlockPlace::kEvictable;
    bool prefetched = false;     // for a launch to come, and not used since
    bool pinned = false;         // the program prefers it on the device
    LaunchIndex launch = 0;      // its last use, or the next one where a launch expects it
    LaunchIndex afterwards = 0;  // launch that is expected to use it after that; 0: none is known
    std::uint64_t migrations_at_use = 0;  // its device's count of migrations at its last use
  } order;

  // Written by UseTracker.
  struct Uses {
    BlockUser user;        // the run of the launch that used it last
    BlockUser writer;      // and of the one that wrote it last, as far as is known
    LaunchIndex last = 0;  // launch that used it last
    Work work = 0;         // the work clock before that launch
    LaunchIndex next = 0;  // launch that will use it next; past or 0: none is known
    Use next_use = Use::kUnknown;
    bool left_since = false;  // it left the device after its last use
  } uses;

  // Written by CopyBack.
  struct HostCopy {
    bool read_mostly = false;        // a prefetch duplicates it instead of moving it
    bool ahead_of_need = false;      // the host's copy was written back ahead of need
    bool queued = false;             // for write-back
    LaunchIndex written = 0;         // launch that may have written it last, as far as is known
    EventSequence valid_since = 0;   // launch that the host's copy was made for, or behind
    EventSequence single_since = 0;  // event at which it was last made to be in one place
  } host_copy;

  // Written by HostResidents; `by_program` by AddressSpace.
  struct OnHost {
    bool by_program = false;       // the program prefers it there
    bool advised = false;          // deepum advised it to stay there
    bool of_group = false;         // as part of a group of tensors, whichever launches use it
    bool also_dense = false;       // advice was withdrawn: launches that need all of it use it too
    bool mapped = false;           // ACCESSED_BY: a sparse launch reads it where it is
    bool refused = false;          // advice for it failed
    std::uint8_t sparse_uses = 0;  // in a row
    bool stays() const { return by_program || advised; }
    // A launch that touches some rows of tables does not need the block on the device.
    bool read_in_place(bool sparse_launch) const { return sparse_launch && mapped; }
  } on_host;
};

}  // namespace deepum::core
