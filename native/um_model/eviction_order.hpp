// The driver's eviction order of a device's chunks: discarded ones first, then used ones by their
// last allocation or migration. An access does not count (uvm_pmm_gpu.c: pick_root_chunk_to_evict;
// the used list is refreshed by uvm_pmm_gpu_mark_root_chunk_used).
#pragma once

#include <cstdint>

#include "block_table.hpp"

namespace deepum::um_model {

class EvictionOrder {
 public:
  void add(Block& block);     // as the newest
  void remove(Block& block);  // nothing, if it is not in the order
  void renew(Block& block);   // makes it the newest, if it is in the order
  // The first one that fault batch `batch` (not 0) did not bring; `needed` only if there is no
  // other. Null: nobody.
  Block* victim(const Block* needed, std::uint64_t batch) const;
  // So many places behind the oldest of those that are used; null: there are fewer.
  Block* used(std::uint64_t place) const;

 private:
  struct List {
    Block* oldest = nullptr;
    Block* newest = nullptr;
  };
  List used_, discarded_;
};

}  // namespace deepum::um_model
