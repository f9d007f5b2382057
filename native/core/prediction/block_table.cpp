#include "prediction/block_table.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace deepum::core {
namespace {

std::size_t row_of(const BlockRun& run, std::size_t rows) {
  std::uint64_t key = (std::uint64_t{run.name} << 32 | run.first) * 0x9e3779b97f4a7c15ull;
  key ^= key >> 29;
  return static_cast<std::size_t>(key * 0xbf58476d1ce4e5b9ull >> 32) & (rows - 1);
}

std::uint64_t hash_of(std::span<const BlockRun> runs) {
  std::uint64_t hash = runs.size();
  for (const BlockRun& run : runs) {
    hash = (hash ^ (std::uint64_t{run.name} << 32 | run.first)) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 29 ^ run.count) * 0xbf58476d1ce4e5b9ull;
  }
  return hash ^ hash >> 32;
}

}  // namespace

BlockTable::Entry* BlockTable::find(const BlockRun& run) {
  if (rows_ == 0) {
    return nullptr;
  }
  Entry* row = &entries_[row_of(run, rows_) * ways_];
  for (std::size_t way = 0; way < ways_; ++way) {
    if (row[way].age != 0 && row[way].run == run) {
      return &row[way];
    }
  }
  return nullptr;
}

void BlockTable::rehash(std::size_t rows, std::size_t ways) {
  std::vector<Entry> old = std::move(entries_);
  entries_.assign(rows * ways, {});
  rows_ = rows;
  ways_ = ways;
  std::sort(old.begin(), old.end(),
            [](const Entry& a, const Entry& b) { return a.age > b.age; });  // the latest find room
  for (Entry& entry : old) {
    Entry* row = &entries_[row_of(entry.run, rows_) * ways_];
    for (std::size_t way = 0; entry.age != 0 && way < ways_; ++way) {
      if (row[way].age == 0) {
        row[way] = std::move(entry);
        break;
      }
    }
  }
}

bool BlockTable::keep(const BlockRun& run, const BlockTableLimits& limits) {
  if (Entry* found = find(run); found != nullptr) {
    found->age = turn_;
    return true;
  }
  while (true) {
    if (rows_ > 0) {
      Entry* row = &entries_[row_of(run, rows_) * ways_];
      Entry* oldest = std::min_element(
          row, row + ways_, [](const Entry& a, const Entry& b) { return a.age < b.age; });
      const bool grown = rows_ >= std::bit_floor(limits.rows);
      if (oldest->age == 0 || (grown && oldest->age != turn_)) {
        *oldest = {run, turn_, 0, {}};
        return true;
      }
      if (grown) {
        return false;
      }
    }
    // The table begins small and grows to its limit, since most launches touch a handful of runs.
    rehash(rows_ == 0 ? 1 : rows_ * 2, limits.ways);
  }
}

void BlockTable::learn(std::span<const BlockRun> accesses, std::span<const std::uint32_t> ages,
                       const BlockTableLimits& limits) {
  if (std::equal(accesses.begin(), accesses.end(), chain_.begin(), chain_.end())) {  // as predicted
    ages_.assign(ages.begin(), ages.end());
    if (!places_.empty() &&
        places_.back() + 1 != places_.size()) {  // those of other accesses, which had more
      std::iota(places_.begin(), places_.end(), 0u);
      learned_ = 0;
    }
    return;
  }
  learn_runs(accesses, limits);
  for (std::size_t i = 0; i < chain_.size() && !accesses.empty(); ++i) {
    ages_[i] = places_[i] < ages.size() ? ages[places_[i]] : ages_[i];
  }
}

bool BlockTable::knows_next() const {
  return std::any_of(uses_.begin(), uses_.end(), [](const RunUse& use) {
    return std::any_of(use.next.begin(), use.next.end(),
                       [](const NextUse& next) { return next.gap != 0; });
  });
}

// A run that both have is used again as soon; another as soon as the one in its place, or where
// there are more or fewer as the last that both have.
void BlockTable::restore_uses(std::span<const BlockRun> runs, std::span<const RunUse> uses) {
  auto from = runs.begin();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const auto same = std::find(from, runs.end(), chain_[i]);
    if (same != runs.end()) {
      uses_[i] = uses[static_cast<std::size_t>(same - runs.begin())];
      from = same + 1;
    }
  }
}

void BlockTable::inherit_next(const BlockTable& like) {
  const bool as_many = like.uses_.size() == uses_.size();
  auto from = like.chain_.begin();
  std::array<NextUse, kRunParts> before{};
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const auto same = std::find(from, like.chain_.end(), chain_[i]);
    if (same != like.chain_.end()) {
      before = uses_[i].next =
          like.uses_[static_cast<std::size_t>(same - like.chain_.begin())].next;
      from = same + 1;
    } else if (as_many) {
      uses_[i].next = like.uses_[i].next;
    } else {
      uses_[i].next = before;
    }
  }
}

void BlockTable::find_places(std::size_t accesses, std::vector<std::uint32_t>& places) const {
  places.assign(accesses, kNotInChain);
  for (std::size_t i = 0; i < chain_.size(); ++i) {
    if (places_[i] < accesses) {
      places[places_[i]] = static_cast<std::uint32_t>(i);
    }
  }
}

void BlockTable::learn_runs(std::span<const BlockRun> accesses, const BlockTableLimits& limits) {
  if (accesses.empty()) {
    return;
  }
  // Accesses with a run that comes twice, or more than the table holds, never equal their chain.
  const std::uint64_t hash = hash_of(accesses);
  if (hash == learned_ && !chain_.empty()) {
    return;
  }
  learned_ = hash;
  ++turn_;
  const std::uint64_t before = hash_of(chain_);
  start_ = end_ = accesses.front();
  keep(start_, limits);
  for (const BlockRun& run : accesses.subspan(1)) {
    if (const Entry* known = find(run); known != nullptr && known->age == turn_) {
      continue;  // a run that comes twice keeps its first place, or the chain would turn back there
    }
    if (!keep(run, limits)) {
      // The chain goes on without it: were another run of this launch pushed out, it would end
      // there.
      continue;
    }
    std::vector<BlockRun>& successors = find(end_)->successors;
    auto place = std::find(successors.begin(), successors.end(), run);
    if (place == successors.end()) {
      if (successors.size() < limits.successors) {
        successors.emplace_back();
      }
      place = successors.end() - 1;
    }
    std::move_backward(successors.begin(), place, place + 1);
    successors.front() = run;
    end_ = run;
  }
  follow();
  places_.clear();
  auto at = accesses.begin();
  for (const BlockRun& run : chain_) {  // in the order of the accesses
    at = std::find(at, accesses.end(), run);
    places_.push_back(static_cast<std::uint32_t>(at - accesses.begin()));
  }
  ages_.assign(chain_.size(), 0);
  if (hash_of(chain_) != before) {
    // As many runs are most likely those of the same arguments, which lie elsewhere now: each will
    // be used again as soon.
    if (uses_.size() != chain_.size()) {
      uses_.assign(chain_.size(), {});
    }
    for (RunUse& use : uses_) {
      use.now = Use::kUnknown;
    }
    uses_turn_ = turn_;
  }
  bytes_ = count_bytes();
}

// From the start over the most recent successors that are still known to the end.
void BlockTable::follow() {
  chain_.clear();
  Entry* entry = find(start_);
  while (entry != nullptr) {
    chain_.push_back(entry->run);
    entry->met = turn_;
    if (entry->run == end_) {
      return;
    }
    Entry* next = nullptr;
    for (const BlockRun& successor : entry->successors) {
      next = find(successor);
      if (next != nullptr && next->met != turn_) {
        break;
      }
      next = nullptr;
    }
    entry = next;
  }
}

std::size_t BlockTable::count_bytes() const {
  std::size_t sum = heap_bytes(entries_.capacity() * sizeof(Entry)) +
                    heap_bytes(chain_.capacity() * sizeof(BlockRun)) +
                    heap_bytes(ages_.capacity() * sizeof(std::uint32_t)) +
                    heap_bytes(places_.capacity() * sizeof(std::uint32_t)) +
                    heap_bytes(uses_.capacity() * sizeof(RunUse));
  for (const Entry& entry : entries_) {
    sum += heap_bytes(entry.successors.capacity() * sizeof(BlockRun));
  }
  return sum;
}

}  // namespace deepum::core
