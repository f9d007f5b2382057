#include "prediction/execution_table.hpp"

#include <algorithm>

namespace deepum::core {
namespace {

constexpr std::size_t kIndexBytes = 48;  // of a hash in the index, about

}  // namespace

ExecutionTable::ExecutionTable(std::size_t most_ids, std::size_t most_records,
                               std::size_t most_bytes)
    : most_ids_(most_ids), most_records_(most_records), most_bytes_(most_bytes) {}

void ExecutionTable::unlink(ExecutionId id) {
  Execution& e = executions_[id];
  (e.older != kNoExecution ? executions_[e.older].newer : oldest_) = e.newer;
  (e.newer != kNoExecution ? executions_[e.newer].older : newest_) = e.older;
}

void ExecutionTable::link_newest(ExecutionId id) {
  Execution& e = executions_[id];
  e.older = newest_;
  e.newer = kNoExecution;
  (newest_ != kNoExecution ? executions_[newest_].newer : oldest_) = id;
  newest_ = id;
}

ExecutionId ExecutionTable::identify(std::uint64_t hash) {
  const auto found = by_hash_.find(hash);
  if (found != by_hash_.end()) {
    if (found->second != newest_) {
      unlink(found->second);
      link_newest(found->second);
    }
    return found->second;
  }
  // A vector that is full takes as much again when it grows.
  const std::size_t growth =
      executions_.size() == executions_.capacity() ? executions_.capacity() * sizeof(Execution) : 0;
  const bool full = executions_.size() >= most_ids_ || too_large(growth + kIndexBytes);
  if (free_.empty() && full && executions_.size() >= 2) {
    give_up_oldest();
  }
  ExecutionId id = 0;
  if (free_.empty()) {
    id = static_cast<ExecutionId>(executions_.size());
    executions_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  executions_[id].hash = hash;
  by_hash_[hash] = id;
  link_newest(id);
  return id;
}

void ExecutionTable::give_up_oldest() {
  const ExecutionId id = oldest_;
  unlink(id);
  Execution& old = executions_[id];
  by_hash_.erase(old.hash);
  bytes_ -= static_cast<std::ptrdiff_t>(
      heap_bytes(old.records.capacity() * sizeof(ExecutionRecord)) + old.blocks.bytes());
  const std::uint32_t generation = old.generation + 1;
  old = {};
  old.generation = generation;
  free_.push_back(id);
}

void ExecutionTable::note_bytes(std::ptrdiff_t change) {
  bytes_ += change;
  while (too_large(0) && oldest_ != newest_) {
    give_up_oldest();
  }
}

void ExecutionTable::share_with(std::size_t bytes) {
  shared_bytes_ = bytes;
  note_bytes(0);
}

RunUse* ExecutionTable::use_by(const BlockUser& user) {
  if (user.id == BlockUser::kNone) {
    return nullptr;
  }
  Execution& execution = executions_[user.id];
  return execution.generation == user.generation && execution.blocks.uses_turn() == user.turn
             ? execution.blocks.use(user.run)
             : nullptr;
}

void ExecutionTable::learn(const Context& context, ExecutionId next) {
  const ExecutionId id = context.ids[0];
  if (id == kNoExecution) {
    return;
  }
  std::vector<ExecutionRecord>& records = executions_[id].records;
  const ExecutionRecord seen{{context.ids[1], context.ids[2], context.ids[3]}, next};
  const auto same_context = [&](const ExecutionRecord& r) {
    return r.prev[0] == seen.prev[0] && r.prev[1] == seen.prev[1] && r.prev[2] == seen.prev[2];
  };
  auto place = std::find_if(records.begin(), records.end(), same_context);
  if (place == records.end()) {
    if (records.size() < most_records_) {
      const std::size_t before = heap_bytes(records.capacity() * sizeof(ExecutionRecord));
      records.push_back(seen);
      bytes_ += static_cast<std::ptrdiff_t>(
          heap_bytes(records.capacity() * sizeof(ExecutionRecord)) - before);
    }
    place = records.end() - 1;
  }
  std::move_backward(records.begin(), place, place + 1);
  records.front() = seen;
}

ExecutionId ExecutionTable::predict(const Context& context) const {
  if (context.ids[0] == kNoExecution) {
    return kNoExecution;
  }
  ExecutionId best = kNoExecution;
  int longest = -1;
  for (const ExecutionRecord& r : executions_[context.ids[0]].records) {
    int agree = 0;
    while (agree < 3 && r.prev[agree] == context.ids[agree + 1]) {
      ++agree;
    }
    if (agree > longest) {
      longest = agree;
      best = r.next;
      if (agree == 3) {
        break;
      }
    }
  }
  return best;
}

std::size_t ExecutionTable::bytes() const {
  return executions_.capacity() * sizeof(Execution) + by_hash_.size() * kIndexBytes +
         static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes_, 0));
}

}  // namespace deepum::core
