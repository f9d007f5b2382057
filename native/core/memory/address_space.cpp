#include "memory/address_space.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "range_parts.hpp"

namespace deepum::core {
namespace {

constexpr std::uint32_t kMostSlots = 1u << DEEPUM_RANGE_SLOT_BITS;
constexpr std::uint64_t kMostBlocks = 1u << DEEPUM_RANGE_FIRST_BITS;
// Bounds on what hostile events make the core keep.
constexpr std::uint64_t kMostBelievedBlocks = 1u << 22;  // 8 TiB over all allocations
constexpr std::uint64_t kMostTorchBlocks = 1u << 20;
constexpr std::size_t kMostNames = 1u << 20;
constexpr std::uint32_t kMostSlotsSkipped = 4096;

constexpr std::uint64_t blocks_up(std::uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes;
}

}  // namespace

BlockSpan Allocation::whole_blocks(std::uint64_t offset, std::uint64_t length) const {
  const std::uint64_t from = first_offset + offset;
  const std::uint64_t first = blocks_up(from), end = (from + length) / kBlockBytes;
  return {0, static_cast<std::uint32_t>(first),
          static_cast<std::uint32_t>(end > first ? end - first : 0)};
}

AddressSpace::AddressSpace(const deepum_core_settings& settings, const Clock& now,
                           deepum_core_statistics& statistics)
    : now_(now),
      statistics_(statistics),
      most_names_(std::min((std::size_t{settings.table_mebibytes} << 20) / 2 / Names::kBytes,
                           kMostNames)) {}

bool AddressSpace::allocate(const deepum_allocate_event& event) {
  const std::uint64_t blocks = blocks_up(event.first_offset % kBlockBytes + event.bytes);
  if (event.slot >= kMostSlots || event.bytes == 0 || event.bytes > kMostBlocks * kBlockBytes ||
      blocks > kMostBlocks) {
    return false;
  }
  if (Allocation* stale = live(event.slot); stale != nullptr) {
    forget(*stale);
  }
  if (allocated_blocks_ + blocks > kMostBelievedBlocks ||
      (event.slot >= slots_.size() && event.slot > slots_.size() + kMostSlotsSkipped)) {
    return false;
  }
  announce_name();
  const std::uint32_t name = names_.intern(event.name);
  std::vector<UmBlock> state(blocks);  // whatever takes memory comes first
  while (slots_.size() <= event.slot) {
    slots_.emplace_back();
  }
  Allocation& allocation = slots_[event.slot];
  allocation = {};
  allocation.live = true;
  allocation.of_program = (event.header.flags & DEEPUM_ALLOCATION_OF_PROGRAM) != 0;
  allocation.generation = event.generation;
  allocation.device = event.header.device;
  allocation.bytes = event.bytes;
  allocation.first_offset = event.first_offset % kBlockBytes;
  allocation.name = name;
  allocation.born = now_.launch;
  allocation.blocks = std::move(state);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    allocation.blocks[i].key = {event.slot, static_cast<std::uint32_t>(i), event.generation,
                                static_cast<std::uint16_t>(event.header.device),
                                allocation.of_program};
  }
  names_.bind(name, event.slot);
  allocated_bytes_ += event.bytes;
  allocated_blocks_ += blocks;
  statistics_.peak_allocated_bytes = std::max(statistics_.peak_allocated_bytes, allocated_bytes_);
  return true;
}

bool AddressSpace::release(std::uint32_t slot, std::uint32_t generation) {
  Allocation* allocation = live(slot);
  if (allocation == nullptr || allocation->generation != generation) {
    return false;
  }
  forget(*allocation);
  return true;
}

void AddressSpace::forget_everything() {
  for (Allocation& allocation : slots_) {
    if (allocation.live) {
      forget(allocation);
    }
  }
}

void AddressSpace::forget(Allocation& allocation) {
  for (ContentListener* const listener : listeners_) {
    listener->memory_gone(allocation);
  }
  allocated_blocks_ -= allocation.blocks.size();
  allocated_bytes_ -= allocation.bytes;
  reported_bytes_[allocation.device] -= allocation.active_bytes;
  for (const auto& [offset, block] : allocation.active) {
    forget(allocation, block);
  }
  names_.bind(allocation.name, -1);
  allocation = {};
}

void AddressSpace::forget(const Allocation& allocation, const TorchBlock& block) {
  --torch_block_count_;
  torch_blocks_.give_back(allocation.device, block.bytes, block.ordinal);
  names_.bind(block.name, -1);
}

// PyTorch's blocks: what is not handed out is dead. The allocator's own total of the device, which
// comes with each report, checks this account.
bool AddressSpace::report(const deepum_block_event& event, bool active) {
  Allocation* allocation = live(event.slot);
  if (allocation == nullptr || allocation->generation != event.generation || event.bytes == 0 ||
      event.offset > allocation->bytes || event.bytes > allocation->bytes - event.offset ||
      (active && torch_block_count_ >= kMostTorchBlocks)) {
    return false;
  }
  announce_name();
  allocation->reported = true;
  std::uint64_t& reported_bytes = reported_bytes_[allocation->device];
  const auto found = allocation->active.find(event.offset);
  if (found != allocation->active.end()) {
    allocation->active_bytes -= found->second.bytes;
    reported_bytes -= found->second.bytes;
    forget(*allocation, found->second);
  }
  if (active) {
    ++torch_block_count_;
    const std::uint32_t ordinal = torch_blocks_.take(allocation->device, event.bytes);
    const std::uint32_t name =
        names_.intern(TorchBlockNames::name(allocation->device, event.bytes, ordinal));
    names_.bind(
        name, event.slot,
        static_cast<std::uint32_t>((allocation->first_offset + event.offset) / kBlockBytes));
    allocation->active[event.offset] = {event.bytes, ordinal, name, now_.launch};
    allocation->active_bytes += event.bytes;
    begin(*allocation, event.offset, event.bytes);
    reported_bytes += event.bytes;
  } else if (found != allocation->active.end()) {
    allocation->active.erase(found);
    end(*allocation, event.offset, event.bytes);
  }
  if (reported_bytes != event.allocated_bytes) {
    ++statistics_.block_mismatches;
  }
  return true;
}

void AddressSpace::begin(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = blocks_up(offset + bytes + allocation.first_offset);
  for (std::uint64_t i = (offset + allocation.first_offset) / kBlockBytes; i < end; ++i) {
    UmBlock& block = allocation.blocks[i];
    for (ContentListener* const listener : listeners_) {
      listener->content_begins(block);
    }
    if (block.content.dead) {
      block.content.fresh = !block.residency.resident;
      block.content.filled = now_.launch;
      block.content.dead = false;
    }
  }
}

void AddressSpace::end(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes) {
  // The inactive stretch around the range: it may complete UM blocks that the range shares with
  // others.
  std::uint64_t from = 0, to = allocation.bytes;
  const auto after = allocation.active.lower_bound(offset);
  if (after != allocation.active.end()) {
    to = after->first;
  }
  if (after != allocation.active.begin()) {
    const auto before = std::prev(after);
    from = before->first + before->second.bytes;
  }
  const std::uint64_t origin = allocation.first_offset;
  const std::uint64_t first = std::max(blocks_up(from + origin), (offset + origin) / kBlockBytes);
  const std::uint64_t end =
      std::min((to + origin) / kBlockBytes, blocks_up(offset + bytes + origin));
  for (std::uint64_t i = first; i < end; ++i) {
    UmBlock& block = allocation.blocks[i];
    const bool died_now = !std::exchange(block.content.dead, true);
    block.content.died = now_.event;
    for (ContentListener* const listener : listeners_) {
      listener->content_died(block, died_now);
    }
  }
  statistics_.operations += end > first ? end - first : 0;
}

void AddressSpace::announce_name() {
  for (ContentListener* const listener : listeners_) {
    listener->naming();
  }
}

bool AddressSpace::resolve(deepum_block_range range, std::span<UmBlock>& found) {
  const RangeParts p = parts(range);
  Allocation* const allocation = live(p.slot);
  if (allocation == nullptr || std::uint64_t{p.first} + p.count > allocation->blocks.size()) {
    return false;
  }
  found = blocks(BlockSpan{p.slot, p.first, p.count});
  return true;
}

UmBlock* AddressSpace::find(std::uint32_t slot, std::uint32_t generation, std::uint64_t index) {
  Allocation* const allocation = live(slot);
  const bool lives = allocation != nullptr && allocation->generation == generation &&
                     index < allocation->blocks.size();
  return lives ? &allocation->blocks[index] : nullptr;
}

// Blocks of PyTorch's small pool, of which many share a UM block, have no names of their own here.
AddressSpace::Named AddressSpace::name_run(Allocation& allocation, std::uint32_t first,
                                           std::uint32_t count) {
  const Named whole{{allocation.name, first, count}, allocation.born, &allocation.regularity};
  if (allocation.active.empty()) {
    return whole;
  }
  const std::uint64_t begin = std::uint64_t{first} * kBlockBytes,
                      end = begin + std::uint64_t{count} * kBlockBytes;
  TorchBlock* best = nullptr;
  std::uint64_t best_bytes = 0;
  auto at = allocation.active.upper_bound(begin - std::min(begin, allocation.first_offset));
  if (at != allocation.active.begin()) {
    --at;
  }
  for (; at != allocation.active.end() && at->first + allocation.first_offset < end; ++at) {
    const std::uint64_t from = at->first + allocation.first_offset, to = from + at->second.bytes;
    if (to <= begin) {
      continue;
    }
    const bool spans = from >= begin && to <= end && from / kBlockBytes == first &&
                       (to - 1) / kBlockBytes == first + count - 1;
    const std::uint64_t bytes = std::min(to, end) - std::max(from, begin) + (spans ? end : 0);
    if (bytes > best_bytes) {
      best = &at->second;
      best_bytes = bytes;
    }
  }
  if (best == nullptr || best->bytes <= TorchBlockNames::kMostSmallBytes ||
      names_.first(best->name) > first) {
    return whole;
  }
  return {{best->name, first - names_.first(best->name), count}, best->born, &best->regularity};
}

bool AddressSpace::names_full() const {
  return names_.size() >= std::max(most_names_, 2 * names_kept_);
}

void AddressSpace::forget_names() {
  Names names;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Allocation& allocation = slots_[slot];
    if (!allocation.live) {
      continue;
    }
    const auto rename = [&](std::uint32_t& index) {
      const std::uint32_t first = names_.first(index);
      index = names.intern(names_.name(index));
      names.bind(index, slot, first);
    };
    rename(allocation.name);
    for (auto& [offset, block] : allocation.active) {
      rename(block.name);
    }
  }
  names_ = std::move(names);
  names_kept_ = names_.size();
}

std::uint64_t AddressSpace::dead_bytes() const {
  std::uint64_t bytes = 0;
  for (const Allocation& allocation : slots_) {
    bytes += allocation.live && allocation.reported
                 ? allocation.bytes - std::min(allocation.bytes, allocation.active_bytes)
                 : 0;
  }
  return bytes;
}

}  // namespace deepum::core
