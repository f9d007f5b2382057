// Blocks that are resident and expected by launches to come, by the launch that needs each first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/block_list.hpp"

namespace deepum::core {

// A ring of lists, one for each launch that may be expected: a block comes, goes, or is found from
// the farthest on, at a cost that does not depend on how many there are.
class ExpectedBlocks {
 public:
  // Launches ahead of the latest one, at most.
  void span(std::size_t launches, unsigned shift = 0) {
    shift_ = shift;
    lists_.assign(std::bit_ceil((launches >> shift) + 2), {});
    occupied_.assign((lists_.size() + 63) / 64, 0);
  }
  std::uint64_t size() const { return size_; }

  // For launch number `block.order.launch`, which is brought into the span.
  void add(UmBlock& block) {
    const std::uint64_t turn =
        std::clamp(block.order.launch >> shift_, passed_ + 1, passed_ + lists_.size() - 1);
    if (turn != block.order.launch >> shift_) {
      block.order.launch = turn << shift_;
    }
    const std::size_t at = place(turn);
    lists_[at].append(block);
    occupied_[at / 64] |= 1ull << at % 64;
    farthest_ = std::max(farthest_, turn);
    ++size_;
  }
  void remove(UmBlock& block) {
    const std::size_t at = place(block.order.launch >> shift_);
    lists_[at].remove(block);
    if (lists_[at].head() == nullptr) {
      occupied_[at / 64] &= ~(1ull << at % 64);
    }
    --size_;
  }
  // The first that was expected by a launch up to that one; nullptr when none was, and that launch
  // counts as passed.
  UmBlock* first_until(std::uint64_t position) {
    position = (position + 1) >> shift_;
    position -= position > 0 ? 1 : 0;  // the turn that it ends, or the one before
    while (size_ > 0 && passed_ < position) {
      if (UmBlock* block = lists_[place(passed_ + 1)].head(); block != nullptr) {
        return block;
      }
      if (passed_ >= farthest_) {
        break;
      }
      ++passed_;
    }
    passed_ = std::max(passed_, position);
    return nullptr;
  }
  // Of the blocks expected by launches beyond that one, the farthest first, the first that is
  // wanted; nullptr when none of the first `most` is.
  template <typename Wanted>
  UmBlock* find_beyond(std::uint64_t position, std::size_t most, Wanted wanted) {
    farthest_ = occupied_until(farthest_);
    for (std::uint64_t at = farthest_; at > std::max(position >> shift_, passed_) && most > 0;
         at = occupied_until(at - 1)) {
      for (UmBlock* block = lists_[place(at)].head(); block != nullptr && most > 0;
           block = block->order.after, --most) {
        if (wanted(*block)) {
          return block;
        }
      }
    }
    return nullptr;
  }
  // The first `most` blocks that launches beyond that one expect, the farthest first. `visit`
  // leaves the lists as they are.
  template <typename Visit>
  void for_each_beyond(std::uint64_t position, std::size_t most, Visit visit) {
    find_beyond(position, most, [&](UmBlock& block) {
      visit(block);
      return false;
    });
  }
  // Any, the farthest first.
  UmBlock* any() {
    return find_beyond(0, 1, [](const UmBlock&) { return true; });
  }

 private:
  std::size_t place(std::uint64_t position) const { return position % lists_.size(); }
  // The farthest up to that one that something is expected by; that which passed last, if there is
  // none.
  std::uint64_t occupied_until(std::uint64_t turn) const {
    while (turn > passed_ && lists_[place(turn)].head() == nullptr) {
      const std::size_t at = place(turn);
      // Whole words of nothing at a time.
      turn -= occupied_[at / 64] == 0 ? std::min<std::uint64_t>(at % 64 + 1, turn - passed_) : 1;
    }
    return turn;
  }

  unsigned shift_ = 0;
  std::vector<BlockList> lists_{2};
  std::vector<std::uint64_t> occupied_{0};
  std::uint64_t passed_ = 0;    // launches that nothing is expected by any longer
  std::uint64_t farthest_ = 0;  // that is expected, or beyond
  std::uint64_t size_ = 0;
};

}  // namespace deepum::core
