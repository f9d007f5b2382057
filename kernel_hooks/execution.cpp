#include "execution.hpp"

#include <algorithm>
#include <cstring>

#include "arguments.hpp"
#include "declared_reads.hpp"
#include "observed_faults.hpp"
#include "range_parts.hpp"
#include "session.hpp"

namespace deepum::hooks {
namespace {

// Which ranges a long execution already holds: open addressing, forgotten by counting on.
struct Seen {
  static constexpr std::uint32_t kPlaces = 4096;  // twice the most ranges of a record
  deepum_block_range ranges[kPlaces];
  std::uint32_t stamps[kPlaces];
  std::uint32_t stamp;
};
thread_local Seen* seen_of_thread = nullptr;

Seen* seen() noexcept {
  if (!seen_of_thread) {
    // Kept: threads that launch are few.
    seen_of_thread = static_cast<Seen*>(__builtin_calloc(1, sizeof(Seen)));
  }
  return seen_of_thread;
}

bool put(Seen& table, deepum_block_range range) noexcept {
  std::uint32_t place = static_cast<std::uint32_t>(range * 0x9e3779b97f4a7c15ull >> 52);
  while (table.stamps[place] == table.stamp) {
    if (table.ranges[place] == range) {
      return false;
    }
    place = (place + 1) % Seen::kPlaces;
  }
  table.stamps[place] = table.stamp;
  table.ranges[place] = range;
  return true;
}

}  // namespace

// A run that goes on where the last one ended, as neighbouring PyTorch blocks do, or lies inside
// it. Both are of one slot.
bool Execution::inside_or_extends_last(deepum_block_range range, bool* extended) noexcept {
  constexpr std::uint64_t kCount = (1ull << DEEPUM_RANGE_COUNT_BITS) - 1;
  constexpr std::uint64_t kFirst = (1ull << DEEPUM_RANGE_FIRST_BITS) - 1;
  deepum_block_range& last = words_[kHeaderWords + count_ - 1];
  const std::uint64_t first = range >> DEEPUM_RANGE_FIRST_SHIFT & kFirst;
  const std::uint64_t end = first + (range & kCount);
  const std::uint64_t last_first = last >> DEEPUM_RANGE_FIRST_SHIFT & kFirst;
  const std::uint64_t last_end = last_first + (last & kCount);
  if (first < last_first || first > last_end || end - last_first > kCount) {
    return false;
  }
  if (end > last_end) {
    last += end - last_end;
    *extended = true;
  }
  return true;
}

bool Execution::add_to_many(deepum_block_range range) noexcept {
  if (Seen* table = seen()) {
    if (count_ - phase_start_ == kFewRanges) {
      if (table->stamp == UINT32_MAX) {
        std::memset(table, 0, sizeof *table);
      }
      ++table->stamp;
      for (std::uint32_t i = phase_start_; i < count_; ++i) {
        put(*table, words_[kHeaderWords + i]);
      }
    }
    if (!put(*table, range)) {
      return false;
    }
  }
  if (count_ == kMostRanges) {
    mark_partial();
    return false;
  }
  words_[kHeaderWords + count_++] = range;
  ++counts_[static_cast<int>(access_)];
  return true;
}

namespace {

// Whether a range has a part in what is written: it holds it, or more than an edge block of it,
// where it has others.
bool is_shared(const RangeParts& range, const RangeParts& written) noexcept {
  const std::uint32_t end = range.first + range.count, written_end = written.first + written.count;
  const std::uint32_t edge = range.count > 2 ? 1 : 0;
  return (range.first <= written.first && written_end <= end) ||
         (range.first + edge < written_end && written.first < end - edge);
}

}  // namespace

void Execution::begin_declared() noexcept {
  const std::uint32_t unknown = counts_[static_cast<int>(Access::kUnknown)];
  const std::uint32_t words = (unknown + 63) / 64;
  if (count_ + words > kMostRanges) {
    return;
  }
  declared_words_ = static_cast<std::uint16_t>(words);
  std::fill_n(declared(), words, ~std::uint64_t{0});
  if (unknown % 64 != 0) {
    declared()[words - 1] = (std::uint64_t{1} << unknown % 64) - 1;
  }
}

void Execution::add_undeclared(std::uint64_t value) noexcept {
  runtime::Extent extent;
  if (declared_words_ == 0 || !runtime::allocation_table.lookup(value, &extent)) {
    return;
  }
  const RangeParts written = parts(extent.range);
  const std::uint32_t unknown = counts_[static_cast<int>(Access::kUnknown)];
  for (std::uint32_t i = 0; i < unknown; ++i) {
    const RangeParts range = parts(words_[kHeaderWords + count_ - unknown + i]);
    if (range.slot == written.slot && is_shared(range, written)) {
      declared()[i / 64] &= ~(std::uint64_t{1} << i % 64);
    }
  }
}

std::uint64_t Execution::emit(const StreamRef& stream) noexcept {
  faults_before_launch();
  event_.header.words = static_cast<std::uint16_t>(kHeaderWords + count_ + declared_words_);
  event_.header.kind = DEEPUM_EVENT_EXECUTE;
  event_.header.flags = flags_;
  event_.header.device = static_cast<std::uint32_t>(stream.device);
  event_.execution_hash = hash_;
  event_.stream = stream.id;
  event_.write_ranges = static_cast<std::uint16_t>(counts_[0]);
  event_.read_ranges = static_cast<std::uint16_t>(counts_[1]);
  event_.unknown_ranges = static_cast<std::uint16_t>(counts_[2]);
  event_.declared_words = declared_words_;
  event_.reserved0 = 0;
  return runtime::emit(&event_.header);
}

namespace {

// Apart, so that it costs nothing where nothing is declared.
[[gnu::cold, gnu::noinline]] void add_declared(Execution& execution, const KernelFunction& function,
                                               unsigned blocks, void* const* parameters,
                                               void* const* extra) noexcept {
  const DeclaredReads declared = declared_reads;
  execution.begin_declared();
  each_argument(function, blocks, parameters, extra, [&](std::uint64_t value, std::uint32_t) {
    if (!declared.contain(value)) {
      execution.add_undeclared(value);
    }
  });
}

}  // namespace

void add_arguments(Execution& execution, const KernelFunction& function, unsigned blocks,
                   void* const* parameters, void* const* extra) noexcept {
  const bool had = each_argument(
      function, blocks, parameters, extra,
      [&](std::uint64_t value, std::uint32_t slot) { execution.add_pointer(value, slot); });
  if (!had || !function.layout_known) {
    execution.mark_partial();
  }
  if (!declared_reads.empty()) [[unlikely]] {
    add_declared(execution, function, blocks, parameters, extra);
  }
}

}  // namespace deepum::hooks
