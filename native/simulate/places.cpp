#include "places.hpp"

#include <algorithm>
#include <iterator>

namespace deepum::simulate {
namespace {

constexpr std::uint64_t kMostBytes = 1ull << 42;

std::uint64_t whole(std::uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

}  // namespace

std::uint64_t Places::take(std::uint64_t bytes) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < bytes) {
      continue;
    }
    const std::uint64_t base = hole->first, rest = hole->second - bytes;
    holes_.erase(hole);
    if (rest != 0) {
      holes_[base + bytes] = rest;
    }
    return base;
  }
  next_ += bytes;
  return next_ - bytes;
}

void Places::give_back(std::uint64_t base, std::uint64_t bytes) {
  auto after = holes_.lower_bound(base);
  if (after != holes_.end() && after->first == base + bytes) {
    bytes += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin() && std::prev(after)->first + std::prev(after)->second == base) {
    std::prev(after)->second += bytes;
  } else {
    holes_[base] = bytes;
  }
}

Place* Places::allocate(const deepum_allocate_event& event) {
  if (event.slot >= kMostSlots || event.bytes == 0 || event.bytes > kMostBytes) {
    return nullptr;
  }
  if (event.slot >= slots_.size()) {
    slots_.resize(event.slot + 1);
  }
  release(event.slot);
  Place& place = slots_[event.slot];
  const std::uint64_t offset = event.first_offset % kBlockBytes;
  place.live = true;
  place.of_program = (event.header.flags & DEEPUM_ALLOCATION_OF_PROGRAM) != 0;
  place.generation = event.generation;
  place.device = event.header.device;
  place.bytes = event.bytes;
  place.base = take(whole(offset + event.bytes)) + offset;
  place.handed_out.assign(whole(offset + event.bytes) / kBlockBytes, 0);
  return &place;
}

void Places::release(std::uint32_t slot) {
  if (Place* const place = find(slot)) {
    const std::uint64_t offset = place->base % kBlockBytes;
    give_back(place->base - offset, whole(offset + place->bytes));
    *place = {};
  }
}

void Places::activate(const deepum_block_event& event) {
  Place* const place = find(event.slot);
  if (place == nullptr || event.bytes == 0 || event.offset > place->bytes ||
      event.bytes > place->bytes - event.offset) {
    return;
  }
  place->reported = true;
  place->active[event.offset] = event.bytes;
  const std::uint64_t low = place->base % kBlockBytes + event.offset;
  for (std::uint64_t block = low / kBlockBytes; block <= (low + event.bytes - 1) / kBlockBytes;
       ++block) {
    place->handed_out[block] = event.header.sequence;
  }
}

void Places::deactivate(const deepum_block_event& event) {
  if (Place* const place = find(event.slot)) {
    const auto found = place->active.find(event.offset);
    if (found != place->active.end() && found->second == event.bytes) {
      place->active.erase(found);
    }
  }
}

std::optional<um_model::Range> Places::blocks(std::uint32_t slot, std::uint32_t generation,
                                              std::uint64_t first, std::uint64_t count) {
  const Place* const place = find(slot);
  if (place == nullptr || place->generation != generation || count == 0) {
    return std::nullopt;
  }
  const std::uint64_t origin = place->base - place->base % kBlockBytes;
  const std::uint64_t from = std::max(place->base, origin + first * kBlockBytes);
  const std::uint64_t to =
      std::min(place->base + place->bytes, origin + (first + count) * kBlockBytes);
  if (from >= to) {
    return std::nullopt;
  }
  return um_model::Range{from, to - from};
}

std::optional<Places::BlockPlace> Places::block_at(std::uint64_t address) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Place& place = slots_[slot];
    const std::uint64_t first = place.base / kBlockBytes * kBlockBytes;
    if (place.live && address >= first && address < place.base + place.bytes) {
      return BlockPlace{slot, (address - first) / kBlockBytes};
    }
  }
  return std::nullopt;
}

bool Places::may_discard(std::uint32_t slot, um_model::Range range, std::uint64_t cause) {
  const Place* const place = find(slot);
  if (place == nullptr || place->of_program || !place->reported ||
      (range.address | range.bytes) % kBlockBytes != 0) {
    return false;
  }
  const std::uint64_t origin = place->base - place->base % kBlockBytes;
  for (std::uint64_t at = range.address; at < range.address + range.bytes; at += kBlockBytes) {
    if (place->handed_out[(at - origin) / kBlockBytes] > cause) {
      return false;
    }
  }
  const std::uint64_t low = range.address - place->base;
  const auto after = place->active.lower_bound(low);
  if (after != place->active.end() && after->first < low + range.bytes) {
    return false;
  }
  return after == place->active.begin() ||
         std::prev(after)->first + std::prev(after)->second <= low;
}

}  // namespace deepum::simulate
