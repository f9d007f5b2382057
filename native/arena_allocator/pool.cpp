#include "pool.hpp"

#include <iterator>
#include <utility>
#include <vector>

namespace deepum::arena_allocator {

std::int64_t Pool::unused_behind(std::int64_t bytes) {
  return (kSegment - bytes % kSegment) % kSegment;
}

Pool::Kind Pool::kind_of(std::int64_t bytes) {
  if (bytes <= kSmall) {
    return Kind::kSmall;
  }
  return bytes <= kMiddle && unused_behind(bytes) > bytes / kUnused ? Kind::kMiddle : Kind::kLarge;
}

std::int64_t Pool::segment_for(std::int64_t bytes, Kind kind) {
  std::int64_t most = kind == Kind::kMiddle ? 2 * bytes : bytes;
  while (kind == Kind::kMiddle && most < kMostOfShared * bytes &&
         unused_behind(most) > most / kUnusedOfShared) {
    most += bytes;
  }
  return most + unused_behind(most);
}

Address Pool::take(std::int64_t bytes, const void* stream, std::int64_t in_use) {
  const Kind kind = kind_of(bytes);
  if (const Address found = fitting(bytes, stream, kind)) {
    return found;
  }
  const std::int64_t segment = segment_for(bytes, kind);
  if (!shares(Kind::kLarge)) {
    keep_below(in_use + in_use / kSpare - segment);
    calls_ += 1;
  }
  Address memory = driver_.obtain(segment);
  if (memory == 0 && release_free()) {
    memory = driver_.obtain(segment);
  }
  if (memory == 0) {
    return 0;
  }
  segments_.emplace(memory, segment);
  const auto range = ranges_.emplace(memory, Range{segment, memory, stream, kind, true}).first;
  free_.insert(key(*range));
  return hand_out(range, bytes);
}

// The smallest that is large enough, the lowest of several.
Address Pool::fitting(std::int64_t bytes, const void* stream, Kind kind) {
  const auto found = free_.lower_bound({stream, kind, bytes, 0});
  if (found == free_.end() || found->stream != stream || found->kind != kind ||
      (!shares(kind) && found->bytes - bytes >= kSegment)) {
    return 0;
  }
  return hand_out(ranges_.find(found->address), bytes);
}

Address Pool::hand_out(Ranges::iterator range, std::int64_t bytes) {
  free_.erase(key(*range));
  const std::int64_t rest = range->second.bytes - bytes;
  if (rest > 0 && shares(range->second.kind)) {
    Range other = range->second;
    other.bytes = rest;
    const auto behind = ranges_.emplace(range->first + bytes, other).first;
    free_.insert(key(*behind));
    range->second.bytes = bytes;
  }
  range->second.is_free = false;
  return range->first;
}

void Pool::give_back(Address address) {
  auto range = ranges_.find(address);
  range->second.is_free = true;
  const auto joins = [&](const Ranges::value_type& other) {
    return other.second.is_free && other.second.segment == range->second.segment;
  };
  if (const auto behind = std::next(range); behind != ranges_.end() && joins(*behind)) {
    free_.erase(key(*behind));
    range->second.bytes += behind->second.bytes;
    ranges_.erase(behind);
  }
  if (range != ranges_.begin() && joins(*std::prev(range))) {
    const auto before = std::prev(range);
    free_.erase(key(*before));
    before->second.bytes += range->second.bytes;
    ranges_.erase(range);
    range = before;
  }
  free_.insert(key(*range));
}

bool Pool::is_whole(const Ranges::const_iterator& range) const {
  return range->second.bytes == segments_.at(range->second.segment);
}

// Free segments leave, the largest first, those of small requests never, until no more than that is
// held.
void Pool::keep_below(std::int64_t bytes) {
  std::set<std::pair<std::int64_t, Address>> whole;
  for (const Free& each : free_) {
    if (each.kind != Kind::kSmall && is_whole(ranges_.find(each.address))) {
      whole.emplace(each.bytes, each.address);
    }
  }
  while (driver_.held_bytes() > bytes && !whole.empty()) {
    release(ranges_.find(whole.rbegin()->second));
    calls_ += 1;
    whole.erase(std::prev(whole.end()));
  }
}

bool Pool::release_free() {
  std::vector<Address> whole;
  for (const Free& each : free_) {
    if (is_whole(ranges_.find(each.address))) {
      whole.push_back(each.address);
    }
  }
  for (const Address address : whole) {
    release(ranges_.find(address));
  }
  return !whole.empty();
}

void Pool::release(Ranges::iterator range) {
  free_.erase(key(*range));
  const auto segment = segments_.find(range->second.segment);
  driver_.release(segment->first, segment->second);
  segments_.erase(segment);
  ranges_.erase(range);
}

}  // namespace deepum::arena_allocator
