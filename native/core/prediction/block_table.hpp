// The UM-block correlation table of one execution ID (DeepUM, section 4): entries in rows and ways,
// each with its successors, most recent first; the start and the end of the launch's accesses.
// Following the successors from the start to the end gives the access set that is prefetched when
// the ID is predicted.
//
// An entry is a run of UM blocks that are accessed together, not a single block: a launch names
// whole tensors, so the blocks inside a run always follow each other, and a table of runs is some
// fifty times smaller and faster to walk.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/block_use.hpp"

namespace deepum::core {

// What the heap takes for so many bytes: a word more, in steps of 16, at least 32 (glibc's malloc).
constexpr std::size_t heap_bytes(std::size_t bytes) {
  return bytes == 0 ? 0 : bytes <= 24 ? 32 : (bytes + 8 + 15) / 16 * 16;
}

// The next use of a run by a launch.
struct NextUse {
  Use use = Use::kUnknown;  // by the launch that uses it next, or that its content ends before
  std::uint32_t gap = 0;    // so many launches later; 0: not known
  // So many UM blocks were touched by launches until then, each launch being one more.
  std::uint32_t touched = 0;
  std::uint32_t round = 0;  // launch, modulo 2^32, of which that was learned
  bool left = false;        // the block that told of it had left in between
  bool leaves = false;      // or what it has then leaves later, before it is written again
};
struct RunUse {
  Use now = Use::kUnknown;
  std::array<NextUse, kRunParts> next{};
  // Of its blocks that were copied out ahead, those written before they left, less those that did
  // leave.
  std::uint32_t in_vain = 0;
  bool leaves() const {
    return std::any_of(next.begin(), next.end(), [](const NextUse& each) { return each.leaves; });
  }
  // It is used again before it leaves, and launches touch that much before they do.
  bool stays_first(std::uint64_t touched) const {
    return std::any_of(next.begin(), next.end(), [&](const NextUse& each) {
      return each.leaves && !each.left && each.touched >= touched;
    });
  }
};
struct BlockTableLimits {
  std::size_t rows, ways, successors;
};

class BlockTable {
 public:
  // The accesses of one launch, in order.
  void learn(std::span<const BlockRun> accesses, std::span<const std::uint32_t> ages,
             const BlockTableLimits& limits);
  // The predicted access set, start to end.
  std::span<const BlockRun> chain() const { return chain_; }
  // How many launches before the latest one each run of the chain had been handed out.
  std::span<const std::uint32_t> ages() const { return ages_; }
  // What each run of the chain is used for, and what comes after, as far as it is known.
  std::span<const RunUse> uses() const { return uses_; }
  RunUse* use(std::uint32_t place) { return place < uses_.size() ? &uses_[place] : nullptr; }
  // Rises when the chain is another: what is learned of its runs from then on is of others.
  std::uint32_t uses_turn() const { return uses_turn_; }
  // Where each of the accesses just learned is in the chain; kNotInChain: nowhere.
  void find_places(std::size_t accesses, std::vector<std::uint32_t>& places) const;
  static constexpr std::uint32_t kNotInChain = ~std::uint32_t{0};
  bool knows_next() const;  // of any of its runs, when it is used next
  // What is used next, and when, as of another launch that was expected in this one's place.
  void inherit_next(const BlockTable& like);
  // What was known of these runs in an earlier session, of those that are in the chain.
  void restore_uses(std::span<const BlockRun> runs, std::span<const RunUse> uses);
  std::size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    BlockRun run{};
    std::uint32_t age = 0;             // turn of its last use; 0: free
    std::uint32_t met = 0;             // turn in which the chain went over it
    std::vector<BlockRun> successors;  // most recent first
  };
  Entry* find(const BlockRun& run);
  bool keep(const BlockRun& run,
            const BlockTableLimits&
                limits);  // false: all places that it could have are taken in this turn
  void rehash(std::size_t rows, std::size_t ways);
  void follow();
  void learn_runs(std::span<const BlockRun> accesses, const BlockTableLimits& limits);
  std::size_t count_bytes() const;

  std::vector<Entry> entries_;  // rows_ x ways
  std::size_t rows_ = 0, ways_ = 0;
  std::uint32_t turn_ = 0;
  BlockRun start_{}, end_{};
  // Hash of the accesses learned last, where the chain does not tell them.
  std::uint64_t learned_ = 0;
  std::vector<BlockRun> chain_;
  std::vector<std::uint32_t> ages_;  // of the chain's runs
  std::vector<RunUse> uses_;
  std::uint32_t uses_turn_ = 0;
  std::vector<std::uint32_t> places_;  // in the accesses learned last, of the chain's runs
  std::size_t bytes_ = 0;
};

}  // namespace deepum::core
