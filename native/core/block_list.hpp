// UM blocks, linked into lists through themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block_table.hpp"

namespace deepum::core {

// The list that a resident block is in.
enum class BlockPlace : std::uint8_t {
  kKept,
  kResting,         // used so lately that its space would come late
  kExpected,        // by a launch still to come
  kExpectedCopied,  // likewise, and the host has the same
  kCopied,          // as kept, and the host has the same
  kDead             // its content is nobody's: it goes before all others, and nothing is copied
};

// The launch that used a block last: an execution ID, and the run of the chain that it had.
struct BlockUser {
  std::uint32_t id = ~std::uint32_t{0};
  std::uint32_t generation = 0;
  std::uint32_t turn = 0;  // of the chain
  std::uint32_t run = 0;
  RunPart part = RunPart::kFirst;
  bool operator==(const BlockUser&) const = default;
};

struct UmBlock {
  UmBlock* before = nullptr;  // its device's list
  UmBlock* after = nullptr;
  std::uint64_t use_position = 0;  // launch (counted from 1) of its last use, or of the next one if it is expected
  std::uint64_t again = 0;         // launch that is expected to use it after that one; 0: none is
  std::uint64_t used = 0;          // launch that used it last,
  std::uint64_t touched = 0;       // and what launches had touched before that (Engine::touched_)
  std::uint64_t awaited = 0;       // launch that will use it next; past or 0: none is known
  std::uint64_t written_at = 0;    // launch that wrote it last, as far as that is known
  BlockUser user;
  BlockUser writer;                // the use that wrote it last, as far as that is known
  Use next_use = Use::kUnknown;    // of the launch `awaited`
  std::uint64_t copied_since = 0;  // sequence of the launch that the host's copy was made for, or behind; that of an earlier one stays
  std::uint64_t single_since = 0;  // sequence at which it was last made to be in one place
  std::uint64_t used_after = 0;    // blocks that had become resident on its device before its last use
  std::uint64_t claim = 0;         // the placement that claimed it last
  std::uint64_t migrated = 0;      // rises from block to block in the order in which they became resident
  std::uint64_t use_sequence = 0;  // of its last actual use
  std::uint64_t streams = 0;       // bit i: used on stream i since it was last moved
  std::uint64_t evicted_for = 0;   // launch that got its space when it was last evicted
  std::uint64_t moved_in = 0;      // last command each way
  std::uint64_t moved_out = 0;
  std::uint64_t discarded = 0;        // last discard
  std::uint64_t died = 0;             // sequence of the report that made it dead
  std::uint64_t brought = 0;          // the prefetch that made it resident, not one in doubt
  std::uint64_t first_use = 0;        // sequence of the first launch that used it since it was last brought; 0: none has,
  std::uint32_t first_stream = 0;     // and that launch's stream
  std::uint64_t filled = 0;           // launch at which it got the content that it has, or the first of it
  std::uint64_t confirmed = 0;        // launch at which it was last known to be there; 0: there is reason to doubt it
  std::uint64_t confirmed_after = 0;  // and how many blocks had been fetched to its device before
  std::uint32_t slot = 0;
  std::uint32_t index = 0;
  bool resident = false;
  bool left = false;          // since its last use
  bool stayed = false;        // when it was moved out: it was copied
  bool copied_ahead = false;  // the host's copy was made ahead of need
  bool populates = false;     // when it was moved in: it had no content
  bool dead = false;          // inactive PyTorch memory, all of it
  BlockPlace place = BlockPlace::kKept;
  bool fetched = false;          // for the launch that expects it
  bool populated = false;        // has content somewhere
  bool fresh = true;             // nothing that is needed was written to it yet
  bool faulted = false;          // was seen to fault,
  bool written = false;          // by a write at least once
  bool host = false;             // the program wants it there: left alone
  bool remote = false;           // advised to stay there, by us,
  bool away = false;             // as one of a group, whatever launches use it,
  bool dense = false;            // or it was a mistake: other launches use it too
  bool mapped = false;           // ACCESSED_BY: a launch that touches some rows need not have it on the device
  bool refused = false;          // advice for it failed
  std::uint8_t sparse_uses = 0;  // in a row
  bool mostly = false;           // READ_MOSTLY,
  bool copied = false;           // and what is on the device is on the host as well
  bool to_copy = false;          // among those to be copied out

  bool is_kept() const { return place == BlockPlace::kKept || place == BlockPlace::kCopied; }
  bool is_expected() const { return place == BlockPlace::kExpected || place == BlockPlace::kExpectedCopied; }
  bool stays_away() const { return host || remote; }
};

// Blocks linked through themselves.
class BlockList {
 public:
  UmBlock* head() const { return head_; }
  UmBlock* tail() const { return tail_; }
  std::uint64_t size() const { return size_; }
  void append(UmBlock& block) {
    block.before = tail_;
    block.after = nullptr;
    (tail_ != nullptr ? tail_->after : head_) = &block;
    tail_ = &block;
    ++size_;
  }
  void remove(UmBlock& block) {
    (block.before != nullptr ? block.before->after : head_) = block.after;
    (block.after != nullptr ? block.after->before : tail_) = block.before;
    block.before = block.after = nullptr;
    --size_;
  }
  // The first that is wanted; nullptr when none of the first `most` is.
  template <typename Wanted>
  UmBlock* find(std::size_t most, Wanted wanted) const {
    for (UmBlock* block = head_; block != nullptr && most > 0; block = block->after, --most) {
      if (wanted(*block)) {
        return block;
      }
    }
    return nullptr;
  }

 private:
  UmBlock* head_ = nullptr;
  UmBlock* tail_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace deepum::core
