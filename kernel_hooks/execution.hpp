// One execution as it is reported: kernel, graph, copy or memset with its execution ID and access
// set.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "allocation_table.hpp"
#include "allocations.hpp"
#include "functions.hpp"
#include "hash.hpp"
#include "records.h"
#include "streams.hpp"

namespace deepum::hooks {

// Lives on the stack of a hook. Ranges are added in the order writes, reads, unknowns (records.h);
// equal ones once, neighbours merged.
class Execution {
 public:
  enum class Access : std::uint8_t { kWrite, kRead, kUnknown };

  explicit Execution(std::uint64_t identity, std::uint8_t flags = 0) noexcept
      : hash_(identity), flags_(flags) {}

  void mix_in(std::uint64_t value) noexcept { hash_ = mix(hash_, value); }
  // A value that may be a pointer, at a position that tells it from the others. Nothing happens if
  // it points at no managed memory.
  void add_pointer(std::uint64_t value, std::uint64_t position) noexcept {
    runtime::Extent extent;
    if (!runtime::allocation_table.lookup(value, &extent)) {
      return;
    }
    // In PyTorch's memory places are left out, and so is whether it is memory that the launch names
    // already: which small tensors share a UM block changes from step to step.
    if (extent.name != 0) {
      hash_ = mix(hash_ ^ extent.name, extent.offset ^ position << 48);
    }
    add(extent.range, Access::kUnknown);
  }
  // Exactly these bytes.
  void add_bytes(std::uint64_t address, std::uint64_t bytes, Access access,
                 std::uint64_t position) noexcept {
    runtime::Extent extent;
    if (!runtime::Allocations::instance().range_of(address, bytes, &extent)) {
      return;
    }
    hash_ = mix(hash_ ^ extent.name, extent.offset ^ position << 48);
    add(extent.range, access);
  }
  // An access that is already part of the hash; 0 bytes: all of the extent the address lies in.
  void add_access(std::uint64_t address, std::uint64_t bytes, Access access) noexcept {
    runtime::Extent extent;
    const auto& allocations = runtime::Allocations::instance();
    if (bytes ? allocations.range_of(address, bytes, &extent)
              : allocations.lookup(address, &extent)) {
      add(extent.range, access);
    }
  }
  // False: the execution names it already.
  bool add(deepum_block_range range, Access access) noexcept {
    if (access != access_) [[unlikely]] {
      access_ = access;
      phase_start_ = count_;
    }
    const deepum_block_range* ranges = words_ + kHeaderWords;
    bool extended = false;
    if (count_ > phase_start_ && (range ^ ranges[count_ - 1]) >> DEEPUM_RANGE_SLOT_SHIFT == 0 &&
        inside_or_extends_last(range, &extended)) {
      return extended;
    }
    if (count_ - phase_start_ >= kFewRanges) {
      return add_to_many(range);
    }
    // One bit a range, by hash: mostly it says "new" and the comparison with each is spared.
    const std::uint64_t bit =
        1ull << (((range >> DEEPUM_RANGE_SLOT_SHIFT) * 11 + (range >> DEEPUM_RANGE_FIRST_SHIFT)) &
                 63);
    if (seen_bits_ & bit) {
      for (std::uint32_t i = phase_start_; i < count_; ++i) {
        if (ranges[i] == range) {
          return false;
        }
      }
    }
    seen_bits_ |= bit;
    words_[kHeaderWords + count_++] = range;
    ++counts_[static_cast<int>(access)];
    return true;
  }
  // Arguments have been added, and some memory is declared to be only read: so are ranges that hold
  // no argument that may be written, nor a part of one; the edge blocks of three and more do not
  // count, since neighbours share them. Without room for their bits nothing is declared.
  void begin_declared() noexcept;
  void add_undeclared(std::uint64_t value) noexcept;
  void mark_partial() noexcept { flags_ |= DEEPUM_EXECUTE_PARTIAL; }
  bool empty() const noexcept { return count_ == 0; }
  std::uint64_t hash() const noexcept { return hash_; }

  // Puts it into the ring; returns its sequence.
  std::uint64_t emit(const StreamRef& stream) noexcept;

 private:
  static constexpr std::uint32_t kHeaderWords = sizeof(deepum_execute_event) / 8;
  static constexpr std::uint32_t kMostRanges = DEEPUM_MAX_EVENT_WORDS - kHeaderWords;
  // Up to here every range is compared with every other.
  static constexpr std::uint32_t kFewRanges = 24;

  std::uint64_t* declared() noexcept { return words_ + kHeaderWords + count_; }
  bool inside_or_extends_last(deepum_block_range range, bool* extended) noexcept;
  bool add_to_many(deepum_block_range range) noexcept;

  std::uint64_t hash_;
  std::uint32_t count_ = 0;
  std::uint32_t phase_start_ = 0;  // first range of the access kind being added
  std::uint32_t counts_[3] = {};
  std::uint64_t seen_bits_ = 0;
  Access access_ = Access::kWrite;
  std::uint8_t flags_;
  std::uint16_t declared_words_ = 0;
  // Left uninitialised: only what is used is touched. The record's header comes first so that it is
  // emitted from here.
  union {
    deepum_execute_event event_;
    std::uint64_t words_[DEEPUM_MAX_EVENT_WORDS];
  };
};

// Adds the pointer arguments of a kernel launch of so many blocks in x (arguments.hpp).
void add_arguments(Execution& execution, const KernelFunction& function, unsigned blocks,
                   void* const* parameters, void* const* extra) noexcept;

// Hash of a launch before its arguments.
inline std::uint64_t launch_identity(const KernelFunction& function, const unsigned grid[3],
                                     const unsigned block[3], unsigned shared_bytes) noexcept {
  const std::uint64_t shape = mix(static_cast<std::uint64_t>(grid[0]) << 32 | grid[1],
                                  static_cast<std::uint64_t>(grid[2]) << 32 | block[0]);
  return mix(function.identity ^ shared_bytes,
             mix(shape, static_cast<std::uint64_t>(block[1]) << 32 | block[2]));
}

}  // namespace deepum::hooks
