// The execution ID table and the execution ID correlation table (DeepUM, sections 3.1 and 4).
//
// A launch's hash gets the next execution ID when it is first seen. Under each ID are records
// (prev3, prev2, prev1, next): the three launches before it and the one that came next, most recent
// first. The three-launch context tells apart the calls of one kernel in different layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "prediction/block_table.hpp"

namespace deepum::core {

using ExecutionId = std::uint32_t;
inline constexpr ExecutionId kNoExecution = ~ExecutionId{0};

// The latest launches: [0] is the latest of them.
struct Context {
  ExecutionId ids[4] = {kNoExecution, kNoExecution, kNoExecution, kNoExecution};
  void push(ExecutionId id) { ids[3] = ids[2], ids[2] = ids[1], ids[1] = ids[0], ids[0] = id; }
};

struct ExecutionRecord {
  ExecutionId prev[3];  // [0] directly before
  ExecutionId next;
};

struct Execution {
  std::uint64_t hash = 0;
  std::uint64_t kernel = 0;      // the hash without the names of PyTorch blocks
  std::uint32_t generation = 0;  // rises when the ID is given to another hash
  std::uint32_t launches = 0;    // of this hash
  bool sparse = false;           // it touches rows of tables
  std::uint64_t last = 0;        // the latest of them, by number over all launches
  std::uint64_t period = 0;      // launches from the one before it to that; 0: there was none
  std::vector<ExecutionRecord> records;  // most recent first
  BlockTable blocks;
  ExecutionId newer = kNoExecution, older = kNoExecution;  // by last launch
};

class ExecutionTable {
 public:
  ExecutionTable(std::size_t most_ids, std::size_t most_records, std::size_t most_bytes);

  // The ID of a hash; a new one if need be, for which the ID longest unused is taken once the table
  // is full.
  ExecutionId identify(std::uint64_t hash);
  Execution& at(ExecutionId id) { return executions_[id]; }
  const Execution& at(ExecutionId id) const { return executions_[id]; }
  ExecutionId id_of(const Execution& execution) const {
    return static_cast<ExecutionId>(&execution - executions_.data());
  }
  // What is known of the run that used a block; nullptr: it is not kept any longer.
  RunUse* use_by(const BlockUser& user);
  // `next` followed the launches of the context.
  void learn(const Context& context, ExecutionId next);
  // What is likely to follow; kNoExecution when nothing has. Contexts that agree longer go first,
  // then more recent ones.
  ExecutionId predict(const Context& context) const;
  // The block table of an ID changed its size. IDs longest unused are given up while the tables are
  // too large.
  void note_bytes(std::ptrdiff_t change);
  // Of the bytes that these tables may have, others take so many.
  void share_with(std::size_t bytes);

  std::size_t size() const { return executions_.size() - free_.size(); }
  std::size_t bytes() const;
  ExecutionId oldest() const { return oldest_; }  // the others by Execution::newer

 private:
  void give_up_oldest();
  void unlink(ExecutionId id);
  void link_newest(ExecutionId id);

  bool too_large(std::size_t more) const { return bytes() + more + shared_bytes_ > most_bytes_; }

  std::size_t most_ids_, most_records_, most_bytes_;
  std::size_t shared_bytes_ = 0;
  std::ptrdiff_t bytes_ = 0;  // of records and block tables
  ExecutionId newest_ = kNoExecution, oldest_ = kNoExecution;
  std::vector<Execution> executions_;
  std::vector<ExecutionId> free_;                           // given up
  std::unordered_map<std::uint64_t, ExecutionId> by_hash_;  // looked up, never walked
};

}  // namespace deepum::core
