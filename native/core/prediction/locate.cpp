#include "prediction/locate.hpp"

namespace deepum::core {

void locate(const AddressSpace& memory, const BlockTable& blocks, std::uint64_t distance,
            std::vector<Access>& found) {
  found.clear();
  const std::span<const BlockRun> runs = blocks.chain();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    BlockSpan span{};
    if (blocks.ages()[i] >= distance && memory.locate(runs[i], span)) {
      found.push_back({span, {blocks.uses()[i].now, blocks.uses()[i].leaves()}});
    }
  }
}

}  // namespace deepum::core
