// Which pages hold bytes that copies and memsets have put there: what is to be zeroed elsewhere
// reads as zeros already, and costs nothing. The CPU's own accesses to managed memory are not seen.
#pragma once

#include <bitset>
#include <cstdint>
#include <unordered_map>

#include "engine.hpp"
#include "page_map.hpp"

namespace deepum::simgpu {

namespace um_model = deepum::um_model;

class WrittenPages {
 public:
  void add(um_model::Range range);
  void remove(um_model::Range range);  // pages that lie in it as a whole
  // Calls zero(range) for each part of the range that may hold something: parts of pages, and runs
  // of whole ones, which are removed.
  template <typename Zero>
  void take(um_model::Range range, Zero zero);

 private:
  static constexpr std::uint64_t kPages = um_model::kBlockBytes / kPage;
  // By number of the UM block; only those with pages.
  std::unordered_map<std::uint64_t, std::bitset<kPages>> blocks_;
};

template <typename Zero>
void WrittenPages::take(um_model::Range range, Zero zero) {
  const std::uint64_t end = range.address + range.bytes;
  for (std::uint64_t at = range.address; at < end;) {
    const std::uint64_t number = at / um_model::kBlockBytes,
                        stop = std::min(end, (number + 1) * um_model::kBlockBytes);
    const auto found = blocks_.find(number);
    std::uint64_t run = 0;  // where a run of whole pages begins; 0: none
    for (; found != blocks_.end() && at < stop;) {
      const std::uint64_t page = at / kPage % kPages,
                          page_end = std::min(stop, (at / kPage + 1) * kPage);
      const bool whole = at % kPage == 0 && page_end - at == kPage, holds = found->second[page];
      if (run != 0 && !(whole && holds)) {
        zero(um_model::Range{run, at - run});
        run = 0;
      }
      if (holds && whole) {
        if (run == 0) run = at;
        found->second.reset(page);
      } else if (holds) {
        zero(um_model::Range{at, page_end - at});
      }
      at = page_end;
    }
    if (run != 0) zero(um_model::Range{run, at - run});
    if (found != blocks_.end() && found->second.none()) blocks_.erase(found);
    at = stop;
  }
}

}  // namespace deepum::simgpu
