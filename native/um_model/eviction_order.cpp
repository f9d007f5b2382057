#include "eviction_order.hpp"

namespace deepum::um_model {

void EvictionOrder::add(Block& block) {
  const bool dropped = block.on_device != 0 && (block.on_device & ~block.discarded) == 0;
  List& list = dropped ? discarded_ : used_;
  block.older = list.newest;
  block.newer = nullptr;
  (list.newest != nullptr ? list.newest->newer : list.oldest) = &block;
  list.newest = &block;
  block.in_order = true;
}

// The list's ends are found by the block's neighbours, so it does not matter that its discarded
// state may have changed since.
void EvictionOrder::remove(Block& block) {
  if (!block.in_order) {
    return;
  }
  if (block.older != nullptr) {
    block.older->newer = block.newer;
  }
  if (block.newer != nullptr) {
    block.newer->older = block.older;
  }
  for (List* const list : {&used_, &discarded_}) {
    if (list->oldest == &block) {
      list->oldest = block.newer;
    }
    if (list->newest == &block) {
      list->newest = block.older;
    }
  }
  block.older = block.newer = nullptr;
  block.in_order = false;
}

void EvictionOrder::renew(Block& block) {
  if (!block.in_order) {
    return;
  }
  remove(block);
  add(block);
}

Block* EvictionOrder::victim(const Block* needed, std::uint64_t batch) const {
  Block* last_choice = nullptr;
  for (const List* const list : {&discarded_, &used_}) {
    for (Block* block = list->oldest; block != nullptr; block = block->newer) {
      if (batch != 0 && block->batch == batch) {
        continue;
      }
      if (block != needed) {
        return block;
      }
      last_choice = block;
    }
  }
  return last_choice;
}

Block* EvictionOrder::used(std::uint64_t place) const {
  Block* block = used_.oldest;
  for (; block != nullptr && place != 0; --place) {
    block = block->newer;
  }
  return block;
}

}  // namespace deepum::um_model
