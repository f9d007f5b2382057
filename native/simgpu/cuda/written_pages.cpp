#include "written_pages.hpp"

namespace deepum::simgpu {

void WrittenPages::add(um_model::Range range) {
  if (range.bytes == 0) return;
  const std::uint64_t last = (range.address + range.bytes - 1) / kPage;
  std::bitset<kPages>* block = nullptr;
  for (std::uint64_t page = range.address / kPage; page <= last; ++page) {
    if (block == nullptr || page % kPages == 0) block = &blocks_[page / kPages];
    block->set(page % kPages);
  }
}

void WrittenPages::remove(um_model::Range range) {
  take(range, [](um_model::Range) {});
}

}  // namespace deepum::simgpu
