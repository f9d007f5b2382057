// UM blocks, linked into a list through themselves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/um_block.hpp"

namespace deepum::core {

class BlockList {
 public:
  UmBlock* head() const { return head_; }
  UmBlock* tail() const { return tail_; }
  std::uint64_t size() const { return size_; }
  void append(UmBlock& block) {
    block.order.before = tail_;
    block.order.after = nullptr;
    (tail_ != nullptr ? tail_->order.after : head_) = &block;
    tail_ = &block;
    ++size_;
  }
  void remove(UmBlock& block) {
    (block.order.before != nullptr ? block.order.before->order.after : head_) = block.order.after;
    (block.order.after != nullptr ? block.order.after->order.before : tail_) = block.order.before;
    block.order.before = block.order.after = nullptr;
    --size_;
  }
  // The first block that is wanted; nullptr when none of the first `most` is.
  template <typename Wanted>
  UmBlock* find(std::size_t most, Wanted wanted) const {
    for (UmBlock* block = head_; block != nullptr && most > 0; block = block->order.after, --most) {
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
