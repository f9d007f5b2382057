// The format of a profile.
//
// Little-endian: "DEEPUMPR", u32 version, u32 zero, u64 FNV-1a of what follows; u32 names, u64
// each; u32 executions, the one longest unused first, for each: u64 hash, u64 hash without the
// names of PyTorch blocks, u32 records, the most recent first, (prev1, prev2, prev3, next) as u32
// each, places in this list or ~0 for none, u32 runs, (name, first block, blocks, launches since it
// was handed out, u32 what it is used for; for the run's first block, inner blocks and last block:
// u32 next use and flags, u32 launches until then, u32 UM blocks touched until then; u32 copies in
// vain); u32 launches, the oldest first, for each: u32 its execution's place, i32 growth of content
// in UM blocks, u32 device, u32 blocks that died away from it; u32 devices, for each: u64 most UM
// blocks that were allocated of it.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>

#include "profile.hpp"

namespace deepum::core {
namespace {

constexpr char kMagic[8] = {'D', 'E', 'E', 'P', 'U', 'M', 'P', 'R'};
constexpr std::uint32_t kVersion = 5;
constexpr std::size_t kHead = 24;
// Launches that an execution counts as having had: what was kept was learned.
constexpr std::uint32_t kLaunchesByProfile = 2;
// All that the history holds: the beginning of a run, too, unless it was long.
constexpr std::uint64_t kMostSavedLaunches = 1u << 16;

struct SavedLaunch {
  ExecutionId place;
  std::int32_t growth;
  std::uint32_t device;
  std::uint32_t died_away;
};

struct SavedUse {
  std::uint32_t now;
  struct {
    std::uint32_t use, gap, touched;  // use: 1 x what for, 4 x left, 8 x leaves
  } next[kRunParts];
  std::uint32_t in_vain;
};

SavedUse saved(const RunUse& use) {
  SavedUse made{static_cast<std::uint32_t>(use.now), {}, use.in_vain};
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const NextUse& next = use.next[i];
    made.next[i] = {
        static_cast<std::uint32_t>(next.use) | (next.left ? 4u : 0) | (next.leaves ? 8u : 0),
        next.gap, next.touched};
  }
  return made;
}

RunUse restored(const SavedUse& use) {
  RunUse made;
  made.now = static_cast<Use>(use.now % 4);
  made.in_vain = use.in_vain;
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const auto& next = use.next[i];
    made.next[i] = {static_cast<Use>(next.use % 4),
                    next.gap,
                    next.touched,
                    0,
                    (next.use & 4) != 0,
                    (next.use & 8) != 0};
  }
  return made;
}

std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const std::uint8_t byte : bytes) {
    hash = (hash ^ byte) * 0x100000001b3ull;
  }
  return hash;
}

template <typename T>
void put(std::vector<std::uint8_t>& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    if (bytes_.size() < sizeof value) {
      sound_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  // A count of things of at least that size each.
  std::uint32_t count(std::size_t least_bytes) {
    const auto value = take<std::uint32_t>();
    sound_ = sound_ && value <= bytes_.size() / least_bytes;
    return sound_ ? value : 0;
  }
  bool sound() const { return sound_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool sound_ = true;
};

}  // namespace

std::vector<std::uint8_t> save_profile(const Names& names, const ExecutionTable& executions,
                                       const LaunchHistory& history,
                                       std::span<const std::uint64_t> most_blocks) {
  std::vector<std::uint8_t> out(kHead);
  put(out, static_cast<std::uint32_t>(names.size()));
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    put(out, names.name(i));
  }
  std::vector<ExecutionId> order;
  std::unordered_map<ExecutionId, ExecutionId> place{{kNoExecution, kNoExecution}};
  for (ExecutionId id = executions.oldest(); id != kNoExecution; id = executions.at(id).newer) {
    place.emplace(id, static_cast<ExecutionId>(order.size()));
    order.push_back(id);
  }
  const auto place_of = [&](ExecutionId id) {  // an ID that was given up has none
    const auto found = place.find(id);
    return found != place.end() ? found->second : kNoExecution;
  };
  put(out, static_cast<std::uint32_t>(order.size()));
  for (const ExecutionId id : order) {
    const Execution& execution = executions.at(id);
    put(out, execution.hash);
    put(out, execution.kernel);
    put(out, static_cast<std::uint32_t>(execution.records.size()));
    for (const ExecutionRecord& record : execution.records) {
      put(out, ExecutionRecord{
                   {place_of(record.prev[0]), place_of(record.prev[1]), place_of(record.prev[2])},
                   place_of(record.next)});
    }
    const auto chain = execution.blocks.chain();
    put(out, static_cast<std::uint32_t>(chain.size()));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      put(out, chain[i]);
      put(out, execution.blocks.ages()[i]);
      put(out, saved(execution.blocks.uses()[i]));
    }
  }
  std::vector<SavedLaunch> launches;
  for (std::uint64_t at = history.end() - std::min(history.end(), kMostSavedLaunches);
       at < history.end(); ++at) {
    if (!history.holds(at)) {
      continue;
    }
    const PastLaunch& past = history.at(at);
    if (const ExecutionId saved = place_of(past.id);
        saved != kNoExecution && executions.at(past.id).generation == past.generation) {
      launches.push_back({saved, past.growth, past.device, past.died_away});
    }
  }
  put(out, static_cast<std::uint32_t>(launches.size()));
  for (const SavedLaunch& launch : launches) {
    put(out, launch);
  }
  put(out, static_cast<std::uint32_t>(most_blocks.size()));
  for (const std::uint64_t blocks : most_blocks) {
    put(out, blocks);
  }
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  std::memcpy(out.data() + 8, &kVersion, sizeof kVersion);
  const std::uint64_t sum = checksum(std::span(out).subspan(kHead));
  std::memcpy(out.data() + 16, &sum, sizeof sum);
  return out;
}

bool load_profile(std::span<const std::uint8_t> bytes, const deepum_core_settings& settings,
                  std::size_t history_bytes, Names& names, ExecutionTable& executions,
                  LaunchHistory& history, std::span<std::uint64_t> foretold) {
  std::uint32_t version = 0;
  std::uint64_t sum = 0;
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return false;
  }
  std::memcpy(&version, bytes.data() + 8, sizeof version);
  std::memcpy(&sum, bytes.data() + 16, sizeof sum);
  if (version != kVersion || sum != checksum(bytes.subspan(kHead)) || executions.size() != 0) {
    return false;
  }
  struct Loaded {
    std::uint64_t hash, kernel;
    std::vector<ExecutionRecord> records;
    std::vector<BlockRun> runs;
    std::vector<std::uint32_t> ages;
    std::vector<RunUse> uses;
  };
  Reader reader(bytes.subspan(kHead));
  std::vector<std::uint64_t> saved_names(reader.count(8));
  for (std::uint64_t& name : saved_names) {
    name = reader.take<std::uint64_t>();
  }
  std::vector<Loaded> loaded(reader.count(24));
  for (Loaded& execution : loaded) {
    execution.hash = reader.take<std::uint64_t>();
    execution.kernel = reader.take<std::uint64_t>();
    execution.records.resize(reader.count(sizeof(ExecutionRecord)));
    for (ExecutionRecord& record : execution.records) {
      record = reader.take<ExecutionRecord>();
    }
    execution.runs.resize(
        reader.count(sizeof(BlockRun) + sizeof(std::uint32_t) + sizeof(SavedUse)));
    for (BlockRun& run : execution.runs) {
      run = reader.take<BlockRun>();
      execution.ages.push_back(reader.take<std::uint32_t>());
      execution.uses.push_back(restored(reader.take<SavedUse>()));
      if (run.name >= saved_names.size() ||
          std::uint64_t{run.first} + run.count > 1u << DEEPUM_RANGE_FIRST_BITS) {
        return false;
      }
    }
    for (const ExecutionRecord& record : execution.records) {
      for (const ExecutionId id : {record.prev[0], record.prev[1], record.prev[2], record.next}) {
        if (id != kNoExecution && id >= loaded.size()) {
          return false;
        }
      }
    }
  }
  std::vector<SavedLaunch> launches(reader.count(sizeof(SavedLaunch)));
  for (SavedLaunch& launch : launches) {
    launch = reader.take<SavedLaunch>();
    if (launch.place >= loaded.size() || launch.device >= DEEPUM_MAX_DEVICES) {
      return false;
    }
  }
  std::vector<std::uint64_t> most_blocks(reader.count(sizeof(std::uint64_t)));
  for (std::uint64_t& blocks : most_blocks) {
    blocks = reader.take<std::uint64_t>();
  }
  if (!reader.sound() || !reader.at_end() || most_blocks.size() > foretold.size()) {
    return false;
  }
  std::ranges::copy(most_blocks, foretold.begin());
  std::vector<std::uint32_t> name_index;
  name_index.reserve(saved_names.size());
  for (const std::uint64_t name : saved_names) {
    name_index.push_back(names.intern(name));
  }
  executions.share_with(names.bytes() + history_bytes);
  // If this core keeps fewer, those longest unused are left out, and records of them too.
  std::vector<ExecutionId> ids(loaded.size(), kNoExecution);
  for (std::size_t i = loaded.size() - std::min<std::size_t>(loaded.size(), settings.execution_ids);
       i < loaded.size(); ++i) {
    ids[i] = executions.identify(loaded[i].hash);
  }
  const BlockTableLimits limits{settings.block_table_rows, settings.block_table_ways,
                                settings.block_table_successors};
  const auto id_of = [&](ExecutionId saved) {
    return saved < ids.size() ? ids[saved] : kNoExecution;
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Loaded& execution = loaded[i];
    if (ids[i] == kNoExecution || executions.at(ids[i]).hash != execution.hash) {
      continue;  // no room for it
    }
    for (auto record = execution.records.rbegin(); record != execution.records.rend();
         ++record) {  // the most recent last
      Context context;
      context.ids[0] = ids[i];
      for (int k = 0; k < 3; ++k) {
        context.ids[k + 1] = id_of(record->prev[k]);
      }
      if (const ExecutionId next = id_of(record->next); next != kNoExecution) {
        executions.learn(context, next);
      }
    }
    std::vector<BlockRun> runs = execution.runs;
    for (BlockRun& run : runs) {
      run.name = name_index[run.name];
    }
    Execution& target = executions.at(ids[i]);
    const auto before =
        static_cast<std::ptrdiff_t>(target.blocks.bytes());  // of a hash that comes twice
    target.blocks.learn(runs, execution.ages, limits);
    target.blocks.restore_uses(runs, execution.uses);
    target.kernel = execution.kernel;
    // What was kept was learned: the first step may already fetch ahead.
    target.launches = kLaunchesByProfile;
    executions.note_bytes(static_cast<std::ptrdiff_t>(target.blocks.bytes()) - before);
  }
  for (const SavedLaunch& launch : launches) {
    const Loaded& execution = loaded[launch.place];
    const ExecutionId id = ids[launch.place];
    if (id != kNoExecution && executions.at(id).hash == execution.hash) {
      history.append({execution.hash, execution.kernel, id, executions.at(id).generation,
                      launch.growth, launch.device, launch.died_away});
    }
  }
  return true;
}

}  // namespace deepum::core
