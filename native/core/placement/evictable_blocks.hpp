// Blocks that may be evicted, the first to leave first: in the order in which they came here, or in
// that of their migration, which costs a logarithm since a block comes back to the place that it
// had.
#pragma once

#include <cstddef>
#include <set>

#include "memory/block_list.hpp"

namespace deepum::core {

class EvictableBlocks {
 public:
  explicit EvictableBlocks(bool by_migration) : by_migration_(by_migration) {}
  void add(UmBlock& block) { by_migration_ ? void(by_age_.insert(&block)) : list_.append(block); }
  void remove(UmBlock& block) { by_migration_ ? void(by_age_.erase(&block)) : list_.remove(block); }
  // The first block that is wanted; nullptr when none of the first `most` is.
  template <typename Wanted>
  UmBlock* find(std::size_t most, Wanted wanted) const {
    if (!by_migration_) {
      return list_.find(most, wanted);
    }
    for (auto at = by_age_.begin(); at != by_age_.end() && most > 0; ++at, --most) {
      if (wanted(**at)) {
        return *at;
      }
    }
    return nullptr;
  }

 private:
  struct Earlier {
    bool operator()(const UmBlock* a, const UmBlock* b) const {
      return a->residency.migrated < b->residency.migrated;
    }
  };
  bool by_migration_;
  BlockList list_;
  std::set<UmBlock*, Earlier> by_age_;
};

}  // namespace deepum::core
