// The bytes themselves. Device memory is as large as the card, host memory may be smaller: pages
// that were never written stay untouched, zeros are given back to the system instead of being
// written.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "operation.hpp"
#include "page_map.hpp"

namespace deepum::simgpu {
namespace {

std::uint64_t page_up(std::uint64_t address) { return (address + kPage - 1) / kPage * kPage; }
std::uint64_t page_down(std::uint64_t address) { return address / kPage * kPage; }
char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

// Zeroes [begin, end) of our own memory. free_pages: how whole pages are given back to the system,
// after which they read as zeros.
void clear(std::uint64_t begin, std::uint64_t end, int free_pages = MADV_DONTNEED) {
  const std::uint64_t first = page_up(begin), last = page_down(end);
  if (first >= last) {
    std::memset(at(begin), 0, end - begin);
    return;
  }
  if (begin < first) std::memset(at(begin), 0, first - begin);
  madvise(at(first), last - first, free_pages);
  if (last < end) std::memset(at(last), 0, end - last);
}

bool all_zero(const char* data, std::uint64_t bytes) {
  return bytes == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes - 1) == 0);
}

void copy_row(const AddressSpace& memory, std::uint64_t destination, std::uint64_t source,
              std::uint64_t bytes) {
  const bool sparse_source = memory.sparse(source), sparse_destination = memory.sparse(destination);
  if (bytes < 4 * kPage || (!sparse_source && !sparse_destination) ||
      (destination < source + bytes && source < destination + bytes)) {
    std::memmove(at(destination), at(source), bytes);
    return;
  }
  std::array<bool, kPagesAtOnce> present{};
  const std::uint64_t end = source + bytes;
  std::uint64_t zeros = 0;  // bytes of zeros before `from`, not carried out yet
  const auto flush = [&](std::uint64_t from) {
    if (zeros == 0) return;
    const std::uint64_t to = destination + (from - source);
    if (sparse_destination) {
      clear(to - zeros, to);
    } else {
      std::memset(at(to - zeros), 0, zeros);
    }
    zeros = 0;
  };
  for (std::uint64_t from = source; from < end;) {
    const std::uint64_t group = page_down(from);
    const std::uint64_t count = std::min(kPagesAtOnce, (page_up(end) - group) / kPage);
    const bool known = sparse_source && read_page_map(group, count, present);
    for (std::uint64_t page = 0; page < count; ++page) {
      const std::uint64_t stop = std::min(end, group + (page + 1) * kPage);
      const std::uint64_t length = stop - from;
      const bool zero =
          known && !present[page] ? true : sparse_destination && all_zero(at(from), length);
      if (zero) {
        zeros += length;
      } else {
        flush(from);
        std::memcpy(at(destination + (from - source)), at(from), length);
      }
      from = stop;
    }
  }
  flush(end);
}

template <typename Element>
void fill_row(std::uint64_t destination, std::uint64_t width, std::uint32_t value) {
  auto* const begin = reinterpret_cast<Element*>(destination);
  std::fill(begin, begin + width, static_cast<Element>(value));
}

}  // namespace

// What an allocator has handed out is written by copies and memsets alone, unless host modules
// compute. Whether other memory holds anything, which the CPU may have written too, the kernel
// knows.
void zero_data(State& state, um_model::Range range) {
  if (!state.memory.owns(range.address)) return;
  const bool sparse = state.memory.sparse(range.address);
  const auto zero = [&](um_model::Range part) {
    clear(part.address, part.address + part.bytes, sparse ? MADV_DONTNEED : MADV_REMOVE);
  };
  if (sparse && !state.host_module_loaded && state.blocks.holds(range.address)) {
    state.written_pages.take(range, zero);
    return;
  }
  std::array<bool, kPagesAtOnce> present{};
  const std::uint64_t end = range.address + range.bytes, first = page_up(range.address),
                      last = page_down(end);
  for (const auto& [from, to] :
       {std::pair{range.address, std::min(first, end)}, std::pair{std::max(first, last), end}}) {
    if (from < to && (!sparse || !read_page_map(page_down(from), 1, present) || present[0]))
      zero({from, to - from});
  }
  if (first < last) zero({first, last - first});
  state.written_pages.remove(range);
}

void copy_data(State& state, const CopyWork& work) {
  const std::uint64_t source =
      work.staged.empty() ? work.source : reinterpret_cast<std::uint64_t>(work.staged.data());
  if (work.bytes() == 0) return;
  if (state.memory.owns(work.destination))
    state.written_pages.add({work.destination, work.destination_span()});
  const bool dense = work.height * work.depth == 1;
  if (dense) {
    copy_row(state.memory, work.destination, source, work.width);
    return;
  }
  for (std::uint64_t z = 0; z < work.depth; ++z) {
    for (std::uint64_t y = 0; y < work.height; ++y) {
      copy_row(state.memory,
               work.destination + z * work.destination_slice + y * work.destination_pitch,
               source + z * work.source_slice + y * work.source_pitch, work.width);
    }
  }
}

void fill_data(State& state, const FillWork& work) {
  if (work.value != 0) state.written_pages.add({work.destination, work.span()});
  const std::uint64_t row = work.width * work.element;
  for (std::uint64_t y = 0; y < work.height; ++y) {
    const std::uint64_t destination = work.destination + y * work.pitch;
    if (work.value == 0 && state.memory.sparse(destination)) {
      clear(destination, destination + row);
    } else if (work.element == 1) {
      std::memset(at(destination), static_cast<int>(work.value), row);
    } else if (work.element == 2) {
      fill_row<std::uint16_t>(destination, work.width, work.value);
    } else {
      fill_row<std::uint32_t>(destination, work.width, work.value);
    }
  }
}

}  // namespace deepum::simgpu
