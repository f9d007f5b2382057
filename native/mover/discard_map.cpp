#include "discard_map.hpp"

#include <algorithm>
#include <iterator>

namespace deepum::mover {
namespace {

constexpr std::size_t kMostEntries = 1u << 16;

}  // namespace

// The first entry that reaches beyond the address.
DiscardMap::Entries::const_iterator DiscardMap::first_at(std::uint64_t address) const noexcept {
  const auto at = entries_.lower_bound(address);
  return at != entries_.begin() && std::prev(at)->second.end > address ? std::prev(at) : at;
}

bool DiscardMap::propose(std::uint64_t address, std::uint64_t bytes, std::uint64_t id) {
  if (entries_.size() >= kMostEntries) {
    return false;
  }
  forget(address, bytes);
  entries_[address] = {address + bytes, id, 0};
  return true;
}

bool DiscardMap::given(std::uint64_t address, std::uint64_t id, EventHandle event) noexcept {
  const auto found = entries_.find(address);
  if (found == entries_.end() || found->second.id != id) {
    return false;
  }
  if (event != 0) {
    found->second.event = event;
  } else {
    entries_.erase(found);
  }
  return true;
}

DiscardMap::Awaited DiscardMap::latest(std::uint64_t address, std::uint64_t bytes) const noexcept {
  Awaited found;
  for (auto at = first_at(address); at != entries_.end() && at->first < address + bytes; ++at) {
    if (at->second.id > std::max(found.id, ordered_)) {
      found = {at->second.id, at->second.event};
    }
  }
  return found;
}

void DiscardMap::ordered(std::uint64_t id) noexcept {
  ordered_ = std::max(ordered_, id);
  if (entries_.size() >= kMostEntries / 2) {
    std::erase_if(entries_, [this](const auto& entry) { return entry.second.id <= ordered_; });
  }
}

void DiscardMap::forget(std::uint64_t address, std::uint64_t bytes) noexcept {
  for (auto at = first_at(address); at != entries_.end() && at->first < address + bytes;) {
    at = entries_.erase(at);
  }
}

}  // namespace deepum::mover
