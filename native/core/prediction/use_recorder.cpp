#include "prediction/use_recorder.hpp"

namespace deepum::core {

void UseRecorder::begin(std::uint32_t launches) {
  wanted_ = launches;
  launches_.clear();
  uses_.clear();
  launches_.reserve(launches);
}

void UseRecorder::launched(const deepum_execute_event& event, std::span<const Access> accesses,
                           std::span<const BlockRun> runs, bool expected) {
  if (!under_way()) {
    return;
  }
  if (!expected) {
    begin(static_cast<std::uint32_t>(wanted_));
    return;
  }
  const bool sparse = (event.header.flags & DEEPUM_EXECUTE_SPARSE) != 0;
  const auto number = static_cast<std::uint32_t>(launches_.size());
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const BlockSpan span = accesses[i].span;
    const std::uint64_t name = memory_.names().name(runs[i].name);
    const bool writes = accesses[i].use.now != Use::kReads;
    const std::uint8_t kind = writes ? DEEPUM_RECORDED_WRITES : 0;
    const std::span<const UmBlock> blocks = memory_.blocks(span);
    const auto comes = [&](const UmBlock& block) {
      return !block.on_host.stays() && !block.on_host.read_in_place(sparse);
    };
    for (std::uint32_t from = 0; from < span.count;) {
      std::uint32_t to = from;
      while (to < span.count && comes(blocks[to])) {
        ++to;
      }
      if (to > from) {
        uses_.push_back({name, number, span.slot, span.first + from, runs[i].first + from,
                         to - from, kind, 0, static_cast<std::uint16_t>(event.header.device)});
      }
      from = to + 1;
    }
  }
  launches_.push_back({event.execution_hash, now_.launch});
}

void UseRecorder::content_died(UmBlock& block, bool) { end(block); }

void UseRecorder::memory_gone(Allocation& allocation) {
  for (const UmBlock& block : allocation.blocks) {
    end(block);
  }
}

// Before the launch that comes next. Blocks in a row are one entry.
void UseRecorder::end(const UmBlock& block) {
  if (!under_way()) {
    return;
  }
  const auto launch = static_cast<std::uint32_t>(launches_.size());
  if (!uses_.empty()) {
    deepum_recorded_use& last = uses_.back();
    if (last.kind == DEEPUM_RECORDED_ENDS && last.launch == launch && last.slot == block.key.slot &&
        last.block + last.count == block.key.index) {
      ++last.count;
      return;
    }
  }
  uses_.push_back({0, launch, block.key.slot, block.key.index, 0, 1, DEEPUM_RECORDED_ENDS, 0,
                   block.key.device});
}

}  // namespace deepum::core
