// The decision core: takes event records, keeps the tables and the belief, gives commands. Deterministic, no clock, no threads.
//
// Decisions are made in launch order. Launches are counted from 1; the chain holds the execution IDs predicted to follow the latest
// launch, and placement runs through them in order, making each one's access set resident on the residency that will hold when all
// commands given so far are carried out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core.h"
#include "execution_table.hpp"
#include "history.hpp"
#include "pace_trial.hpp"
#include "remote_trial.hpp"
#include "residency.hpp"
#include "torch_blocks.hpp"

namespace deepum::core {

inline constexpr std::uint64_t kBlockBytes = 1ull << DEEPUM_UM_BLOCK_SHIFT;
inline constexpr std::uint64_t kSettledAfter = 256;  // launches without a surprise, besides two iterations

class Engine {
 public:
  explicit Engine(const deepum_core_settings& settings);

  std::uint64_t process(const std::uint8_t* events, std::size_t bytes);
  std::size_t take_commands(deepum_command* commands, std::size_t most);
  deepum_core_statistics statistics() const;
  bool wants_faults() const;
  bool wants_free_memory() const { return wants_free_memory_; }
  std::uint32_t block_state(std::uint32_t slot, std::uint64_t block) const;

  std::vector<std::uint8_t> save_tables() const;
  bool load_tables(std::span<const std::uint8_t> bytes);

 private:
  // A launch predicted to come.
  struct Link {
    ExecutionId id;
    std::uint32_t generation;  // of that ID
    std::uint64_t kernel;
    std::uint64_t place;      // in the history
    std::int32_t reserved;    // blocks, once it is placed
    std::uint32_t device;     // on which
    std::int32_t growth = 0;  // of content, in blocks, once it is placed
    bool counted = false;     // that is
  };

  // Events (engine.cpp), and what is kept of names.
  bool dispatch(const deepum_event_header* header);  // false: malformed
  void on_lost();
  void forget_tables();
  void bound_names();  // before one is added
  void forget_context();
  // What a device holds (capacity.cpp).
  void on_device(const deepum_device_event& event);
  static void set_capacity(DeviceMemory& device, std::uint64_t blocks);
  static void withdraw(DeviceMemory& device, std::uint64_t capacity);
  void note_fill_point();
  static void end_filling(DeviceMemory& device);
  void on_free_memory(const deepum_free_memory_event& event);
  bool was_taken(const DeviceMemory& device, const Allocation& allocation, const UmBlock& block) const;
  void note_taken(DeviceMemory& device, std::uint64_t blocks);
  // Of memory (memory_events.cpp).
  bool on_allocate(const deepum_allocate_event& event);
  bool on_free(std::uint32_t slot, std::uint32_t generation);
  bool on_block(const deepum_block_event& event, bool active);
  bool on_program_prefetch(const deepum_program_event& event);
  bool on_fault(const deepum_fault_event& event);
  bool on_program_advise(const deepum_program_event& event);
  void on_moved(const deepum_moved_event& event);
  void on_usage(const deepum_usage_event& event);
  bool exceeds_capacity(std::span<const BlockSpan> spans) const;  // of a device, alone
  Allocation* live(std::uint32_t slot) { return slot < slots_.size() && slots_[slot].live ? &slots_[slot] : nullptr; }
  void forget_allocation(Allocation& allocation);
  void forget_torch_block(const Allocation& allocation, const TorchBlock& block);
  // Launches (launches.cpp).
  bool on_execute(const deepum_execute_event& event, std::span<const deepum_block_range> ranges);
  void on_wait();
  void measure_iteration(std::uint64_t period);
  void count_touched();
  void watch_learning(const Execution& execution, bool restarted);
  bool learns() const;
  struct Named {
    BlockRun run;
    std::uint64_t born;
    Regularity* regularity;
  };
  Named name_run(Allocation& allocation, std::uint32_t first, std::uint32_t count);

  // The chain (chain.cpp).
  void expect_nothing();
  void follow(ExecutionId id);  // the latest launch against the chain
  void extend_chain();
  void claim_ahead(std::size_t most);  // launches
  std::size_t trusted() const;
  // Placing the chain (place_ahead.cpp).
  void place_ahead(std::size_t most);
  bool place_next();
  void count_growth(Link& link);
  void draw_back(const UmBlock& victim);
  void fetch_ahead(const DeviceMemory& device);
  bool spare_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position);
  void find_fullest();
  bool knows_fullest() const;
  void reserve_ahead(std::size_t most);
  void reserve(Link& link);
  void make_reserved_room(DeviceMemory& device, std::uint32_t ordinal);
  void drop_chain();
  void pop_link();
  void recognise();
  std::size_t find_in_chain(ExecutionId id) const;  // how many links before it; the chain's size: it is not there
  bool agrees_better(Recollection now) const;
  bool mistaken(Recollection now, bool right);
  bool predict_next(Link& link);
  std::uint64_t headroom(const DeviceMemory& device) const;  // blocks
  // Placement (placement.cpp).
  void use(DeviceMemory& device, UmBlock& block, std::uint64_t position, bool actual);
  // Where the runs are now; those whose allocation was freed are left out.
  std::span<const BlockSpan> locate(const BlockTable& blocks, std::uint64_t distance);  // their uses: located_uses_
  // Makes the spans resident for launch number `position`. False: the window alone exceeds memory; to be tried again.
  bool place(std::span<const BlockSpan> spans, std::span<const SpanUse> uses, std::uint64_t position, bool actual);
  // Launches after which the blocks of that execution are doubted: about an iteration, so that whatever was lost is back after one.
  std::uint64_t doubt_after(const Execution& execution) const;
  bool doubts(DeviceMemory& device, const UmBlock& block);
  bool bring(DeviceMemory& device, UmBlock& block, SpanUse use, std::uint64_t position, bool actual);
  bool make_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual, bool fetches);
  bool may_take_room(const DeviceMemory& device, bool actual) const;
  // Victims (victims.cpp).
  // Without pre-eviction: room is made by the driver (driver_eviction.cpp), at the cost of `outgoing`, nullptr where there is some.
  bool yield_room(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position, bool actual, const UmBlock*& outgoing);
  // Dead blocks (invalidation.cpp).
  void mark_dead(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes);
  void mark_alive(Allocation& allocation, std::uint64_t offset, std::uint64_t bytes);
  bool drops_dead() const { return settings_.invalidation != 0 && !discards_refused_; }
  bool discardable(const UmBlock& block) const;
  void discard(UmBlock& block);
  void stop_discarding();
  void pause_discarding();

  // What launches do with what they touch (uses.cpp).
  struct Trial {  // a launch that used a duplicate
    std::uint64_t sequence;
    BlockUser user;
    std::uint32_t slot, generation, block;
  };
  struct Progress {  // of a stream at the latest look for faults: sequences
    std::uint64_t completed = 0, begun = 0;
    std::uint64_t reported = 0;  // completed at the look before: their faults have been reported
    std::deque<Trial> trials;    // not judged yet
  };
  void inherit_uses(Execution& execution);
  void learn_uses(Execution& execution);
  RunUse* use_by(const BlockUser& user);
  void learn_next(const UmBlock& block, SpanUse use);
  void try_uses(std::uint32_t stream);
  const UmBlock* tried(const Trial& trial) const;
  void forget_trials();
  void note_written(const BlockSpan& span);
  bool on_progress(const deepum_progress_event& event);
  bool blame(const BlockSpan& span, bool all);

  // Clean copies (clean_copies.cpp).
  bool may_ever_duplicate() const;
  bool duplicates() const;
  bool may_duplicate(const UmBlock& block) const;
  void note_writes(std::span<const BlockSpan> spans, std::span<const SpanUse> uses);
  static std::uint64_t copy_to_come(const UmBlock& block);
  void end_duplication(UmBlock& block);
  void set_mostly(UmBlock& block);
  void forget_duplicate(UmBlock& block);
  void prepare_duplicate(DeviceMemory& device, UmBlock& block, SpanUse use);
  bool pays_at_once(const BlockUser& writer);
  bool pays_once_settled(const UmBlock& block);
  void judge_copy(UmBlock& block, bool left);
  void queue_copies(std::span<const BlockSpan> spans, std::span<const SpanUse> uses);
  void copy_out_ahead(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t stream);

  // Advice (advice.cpp).
  void note_sparse_uses(std::span<const BlockSpan> spans, std::uint8_t flags);
  void map_tables(const BlockSpan& span);
  bool may_map(const UmBlock& block) const;
  void give_advice(const UmBlock& first, std::uint32_t count, deepum_mem_advise advice);
  bool passes_over(const UmBlock& block) const { return sparse_ && block.mapped; }
  void advise_remote(const UmBlock& first, std::uint32_t count, bool remote);
  void forget_sparse_uses(UmBlock& block);
  void forget_advice(UmBlock& block);

  // Tensors left on the host (remote_groups.cpp).
  struct RemoteGroup {
    std::uint32_t device = 0;
    std::uint64_t bytes = 0;   // of a tensor
    std::uint64_t blocks = 0;  // of all of them; 0: no group
  };
  template <typename Do>
  void for_each_tensor(std::uint32_t ordinal, Do what);
  bool find_group();
  void try_remote();
  void place_group(bool away);
  bool may_go_away(const UmBlock& block) const;
  void set_away(UmBlock& block, bool away);
  void note_regularity(Allocation& allocation, const BlockSpan& span, Regularity& uses);

  void evict(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, std::uint64_t position);
  void evict_surplus(DeviceMemory& device, std::uint32_t ordinal);
  void leave(DeviceMemory& device, std::uint32_t ordinal, UmBlock& block, bool without_copy, std::uint64_t position);
  deepum_direction direction_of(std::uint64_t move) const;  // DEEPUM_DIRECTIONS: it was given long ago
  // All commands of that kind that follow wait for the move, which is of that direction.
  void await_move(DeviceMemory& device, std::uint32_t ordinal, deepum_command_kind kind, std::uint64_t move, deepum_direction direction);
  void await_move(DeviceMemory& device, std::uint32_t ordinal, deepum_command_kind kind, std::uint64_t move) {
    await_move(device, ordinal, kind, move, direction_of(move));
  }
  void note_streams(DeviceMemory& device, const UmBlock& victim);  // that moves into its space wait for
  void discard_dead(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position);
  void leave_ahead(DeviceMemory& device, std::uint32_t ordinal);
  void leave_in_order(DeviceMemory& device, std::uint32_t ordinal, std::uint64_t position);
  bool keeps_dead(DeviceMemory& device, std::uint32_t ordinal);
  void foresee_growth(DeviceMemory& device, std::uint32_t ordinal);
  UmBlock* next_victim(DeviceMemory& device, std::uint64_t position, bool any, bool dead);
  UmBlock* needed_last(DeviceMemory& device, std::uint64_t position, UmBlock* kept, bool any);
  void hold(std::span<const BlockSpan> spans, std::uint32_t stream);  // the launch at hand, until its blocks are there
  void command(deepum_command_kind kind, std::uint32_t ordinal, UmBlock& block, std::uint64_t after_sequence, std::uint64_t streams,
               std::uint64_t after_move, std::int32_t location = 0, std::uint8_t advice = 0);

  deepum_core_settings settings_;
  deepum_core_statistics statistics_{};
  ExecutionTable executions_;
  Names names_;
  std::size_t names_kept_ = 0;  // when tables were last forgotten: those of what lived
  TorchBlockNames torch_blocks_;
  std::vector<Allocation> slots_;  // an allocation may move, its blocks' addresses stay
  std::array<DeviceMemory, DEEPUM_MAX_DEVICES> devices_;
  std::uint32_t devices_in_use_ = 0;  // ordinals up to that of which something was told
  std::span<DeviceMemory> devices_in_use() { return std::span(devices_).first(devices_in_use_); }

  Context context_;             // of the latest launches
  std::uint64_t position_ = 0;  // launches so far
  std::uint64_t sequence_ = 0;  // of the event at hand
  std::uint64_t claim_ = 0;     // placements so far
  std::deque<Link> chain_;
  History history_;
  Recollection match_;                // of the latest launch
  std::uint32_t inserted_ = 0;        // launches in a row that were not in the chain
  std::uint32_t astray_ = 0;          // of the latest 32 that were, a bit for each that was not quite as predicted
  std::size_t claimed_ = 0;           // links of the chain whose blocks, where resident, are kept for them
  std::size_t placed_ = 0;            // and whose access sets are placed,
  std::size_t promised_ = 0;          // of these those whose blocks stay: the others were fetched ahead where there was room
  std::size_t reserved_ = 0;          // links whose new content has room
  Context chain_context_;             // of the chain's end
  std::uint64_t fullest_ = 0;         // launch with the most content of those until most of it dies; one past or at hand: none is known
  bool sweeping_ = false;             // content does not grow much until then
  std::uint64_t looked_ = 0;          // launch at which that was found; 0: it is not known
  std::size_t looked_over_ = 0;       // links for that
  std::uint64_t right_in_a_row_ = 0;  // predictions
  std::array<std::uint64_t, DEEPUM_MAX_DEVICES> foretold_{};  // by a profile: most blocks that were allocated of each device
  bool recognised_ = false;                                   // the program is the profile's
  std::uint64_t used_streams_ = 0;                            // a bit each
  std::uint64_t surprised_ = 0;                               // the latest launch that was new or not predicted,
  std::uint64_t longest_period_ = 0;                          // and of those since, the most launches since the same one before
  bool graphs_ = false;                                       // one was launched
  bool discards_refused_ = false;                             // the program's side carries none out
  std::uint64_t discards_from_ = 0;                           // launch before which none is tried again,
  std::uint64_t discard_pause_ = 0;                           // and the launches from the latest failure to that
  std::uint64_t unwaited_ = 0;                                // launches since the program last waited
  std::vector<BlockRun> runs_;                                // of the launch at hand, by name
  std::vector<std::uint32_t> ages_;
  std::vector<BlockSpan> spans_;  // and by place
  std::vector<SpanUse> uses_;
  std::vector<std::uint32_t> places_;  // in the execution's chain
  std::vector<BlockSpan> located_;     // of the launch being placed ahead
  std::vector<SpanUse> located_uses_;
  struct Leaving {
    UmBlock* block;
    bool copied;
  };
  std::vector<Leaving> leaving_;  // for the launch being placed

  bool fetching_ahead_ = false;
  bool wants_free_memory_ = false;
  std::uint64_t taken_at_ = 0;     // the latest launch before which blocks were seen to have been taken by the driver; 0: none
  bool taken_lately_ = false;      // since the latest launch
  std::uint64_t doubt_after_ = 0;  // of the execution being placed
  bool sparse_ = false;            // it touches rows of tables

  std::vector<deepum_command> commands_;
  std::size_t taken_ = 0;
  std::array<std::size_t, DEEPUM_DIRECTIONS> last_of_direction_{};  // place in commands_, from 1; 0: none that may be lengthened
  std::size_t last_advice_ = 0;                                     // to duplicate, the same
  std::vector<deepum_command> given_;  // the latest commands, by id modulo kRemembered: what their answers are about
  std::uint64_t last_id_ = 0;
  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t torch_block_count_ = 0;  // handed out
  std::uint64_t mostly_blocks_ = 0;      // READ_MOSTLY
  std::array<Progress, DEEPUM_MAX_STREAMS> progress_;
  std::uint64_t begun_ = 0;  // no launch behind that sequence had, on any stream
  bool faults_are_told_ = false;
  bool times_are_told_ = false;
  PaceTrial pace_;      // with and without clean copies
  RemoteTrial remote_;  // with a group on the device and on the host
  RemoteGroup group_;   // the latest one tried
  std::vector<RemoteGroup> tried_groups_;
  std::uint64_t sought_ = 0;          // launch at which one was looked for; 0: one is to be
  std::uint64_t untold_ = 0;          // the latest launch of which it was not known whether it writes a duplicate
  std::uint64_t iteration_ = 0;       // launches, as far as it is known
  std::uint64_t longest_lately_ = 0;  // way back to the same launch, since
  std::uint64_t measured_ = 0;        // that launch
  std::uint64_t touched_ = 0;         // UM blocks, by all launches, each of which is one more: a time, as launches take it
  std::uint64_t touched_lately_ = 0;  // in an iteration
  std::uint64_t touched_before_ = 0;  // the present one,
  std::uint64_t counted_from_ = 0;    // which began at that launch
  std::uint64_t sparse_blocks_ = 0;   // that have sparse uses, or are remote
};

// Of the memory for tables, what the history may have.
inline std::size_t history_bytes(const deepum_core_settings& settings) { return (std::size_t{settings.table_mebibytes} << 20) / 8; }

inline constexpr std::uint32_t kProven = 2;         // launches of an ID before it is fetched for ahead: one seen once may never come back
inline constexpr std::uint64_t kSoonAfterWait = 8;  // launches: by then the host is ahead of the GPU again,
inline constexpr std::uint32_t kShortQueue = 64;    // unless the driver does not let it
inline constexpr std::size_t kRemembered = 4096;
inline constexpr std::uint32_t kMostCommandBlocks = 8;  // 16 MiB: long enough for the link, short enough to pipeline

}  // namespace deepum::core
