#include "prediction/use_trials.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace deepum::core {
namespace {

constexpr std::size_t kMostTrialsOfStream = 1u << 14;  // of a stream

}  // namespace

void UseTrials::begin(const UmBlock& block, const BlockUser& user, std::uint32_t stream,
                      bool unknown) {
  if (!observed_ || !by_faults_) {
    return;
  }
  latest_unknown_ = unknown ? now_.launch : latest_unknown_;
  std::deque<Trial>& trials = streams_[stream].trials;
  if (trials.size() == kMostTrialsOfStream) {
    trials.pop_front();
  }
  trials.push_back({now_.event, user, block.key});
}

// Launches that had completed at the poll before have had their faults reported: one that was not
// blamed reads.
void UseTrials::progress(const deepum_progress_event& event) {
  observed_ = true;
  Stream& stream = streams_[event.stream];
  std::deque<Trial>& trials = stream.trials;
  for (; !trials.empty() && trials.front().sequence <= stream.completed; trials.pop_front()) {
    const Trial& trial = trials.front();
    ++statistics_.operations;
    RunUse* const run = executions_.use_by(trial.user);
    const UmBlock* const block = find(trial);
    if (run != nullptr && run->now == Use::kUnknown && block != nullptr &&
        block->host_copy.single_since < trial.sequence) {
      run->now = Use::kReads;
    }
  }
  stream.reported = std::exchange(stream.completed, event.completed);
  stream.begun = event.begun;
  begun_ = std::max(begun_, event.begun);
}

// Of the trials that may have been in flight since the last poll one wrote. Launches that are known
// to read are excluded, unless no other remains.
void UseTrials::blame(std::span<const UmBlock> blocks) {
  if (!blame(blocks, false)) {
    blame(blocks, true);
  }
}

// Of several trials of the same block on one stream the first did it: what came behind a write was
// no trial any more. If it only read, nothing is lost by taking it for the writer but what it could
// leave without a copy; the launch that wrote then is found where the block is copied again.
bool UseTrials::blame(std::span<const UmBlock> blocks, bool known_readers_too) {
  bool found = false;
  std::vector<std::uint32_t> blamed;  // of the stream
  const UmBlock::Key& first = blocks.front().key;
  for (Stream& stream : streams_) {
    blamed.clear();
    for (const Trial& trial : stream.trials) {
      if (trial.sequence > stream.begun) {
        break;
      }
      ++statistics_.operations;
      RunUse* const run = executions_.use_by(trial.user);
      if (run != nullptr && trial.key.slot == first.slot && trial.key.index >= first.index &&
          trial.key.index - first.index < blocks.size() && find(trial) != nullptr &&
          (known_readers_too || run->now != Use::kReads) &&
          std::ranges::find(blamed, trial.key.index) == blamed.end()) {
        blamed.push_back(trial.key.index);
        run->now = Use::kWrites;
        found = true;
      }
    }
  }
  return found;
}

void UseTrials::forget() {
  for (Stream& stream : streams_) {
    stream.trials.clear();
  }
}

}  // namespace deepum::core
