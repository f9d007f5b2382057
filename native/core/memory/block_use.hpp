// What launches do with the blocks that they touch, and which of them used a block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace deepum::core {

enum class Use : std::uint8_t { kUnknown, kReads, kWrites, kDies };

// The first and the last UM block of a run may be shared with other tensors, so that they are used
// again by other launches and sooner.
enum class RunPart : std::uint8_t { kFirst, kInner, kLast };
inline constexpr std::size_t kRunParts = 3;
constexpr RunPart part_of(std::uint32_t block, std::uint32_t count) {
  return block == 0 ? RunPart::kFirst : block + 1 == count ? RunPart::kLast : RunPart::kInner;
}

// A run of the block table of an execution ID.
struct BlockUser {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t id = kNone;
  std::uint32_t generation = 0;
  std::uint32_t turn = 0;  // version of the table's chain
  std::uint32_t run = 0;
  RunPart part = RunPart::kFirst;
  bool operator==(const BlockUser&) const = default;
};

// What a launch does with a span of blocks.
struct SpanUse {
  Use now = Use::kUnknown;
  bool leaves = false;  // the blocks leave the device later, before they are written again
  // The launch is the first to use their content: it writes, or there was none.
  bool creates = false;
};

// UM blocks [first, first + count) of the allocation with that name (an index into Names).
struct BlockRun {
  std::uint32_t name;
  std::uint32_t first;
  std::uint32_t count;
  bool operator==(const BlockRun&) const = default;
};

// UM blocks [first, first + count) of one slot.
struct BlockSpan {
  std::uint32_t slot, first, count;
};

struct Access {
  BlockSpan span;
  SpanUse use;
};

}  // namespace deepum::core
