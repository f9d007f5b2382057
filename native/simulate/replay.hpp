// Replays a trace: for each event the host's clock goes on, the core decides, the mover carries out
// what can be, and the work that belongs to the event is given to the machine; in the order in
// which a program does it that runs free or in lock-step (docs/simulate.md).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "markers.hpp"
#include "mover.hpp"
#include "mover_thread.hpp"
#include "places.hpp"
#include "simulate.h"
#include "um_model/engine.hpp"
#include "work_objects.hpp"

namespace deepum::simulate {

inline constexpr std::uint32_t kFaultInterval = 64;  // launches: DEEPUM_FAULT_INTERVAL
// Numbers of streams that only events name.
inline constexpr std::uint32_t kEventStreams = 0x8000'0000;

struct CoreHandle {
  explicit CoreHandle(const deepum_core_settings& settings) : core(deepum_core_create(&settings)) {}
  ~CoreHandle() { deepum_core_destroy(core); }
  CoreHandle(const CoreHandle&) = delete;
  CoreHandle& operator=(const CoreHandle&) = delete;
  deepum_core* core;  // null: settings out of range
};

class Replay {
 public:
  Replay(const um_model::Machine& machine, const deepum_simulation_options& options,
         const deepum_core_settings& settings);
  bool usable() const { return core_.core != nullptr; }

  // Bytes of what was given that are done with.
  struct Done {
    std::size_t event_bytes, work_bytes;
  };
  // Up to the launch behind so many of them. False: malformed.
  bool run(std::span<const std::uint8_t> events, std::span<const std::uint8_t> work,
           std::uint64_t launches = UINT64_MAX, Done* done = nullptr);
  void finish();

  double now() const { return engine_.now(um_model::kProgram); }
  double step_end(std::size_t step) const;  // NaN: the GPU is not there yet
  const std::deque<deepum_simulation_mark>& marks() const { return marks_; }
  std::vector<deepum_simulation_launch> launches() const;
  std::vector<deepum_command>& commands() { return commands_; }
  std::size_t take_activities(std::span<deepum_activity> into);  // how many were taken
  deepum_model_counters counters() const;
  const deepum_core* core() const { return core_.core; }
  deepum_core* core() { return core_.core; }

 private:
  struct Timed {  // a launch that is watched
    std::uint64_t sequence;
    um_model::Event reached, ready, end;  // before it is held, before it starts, behind it
    std::uint64_t tag;                    // its sequence in the trace
    double kernel_ns;
  };

  // False: malformed.
  bool check_work(std::span<const std::uint8_t> work);
  bool take(const deepum_event_header& header, std::span<const std::uint8_t> record);
  bool give(std::span<std::uint8_t> copy);
  void change_card(deepum_device_event& event) const;
  void block(const deepum_block_event& event);
  void stream_destroyed(const deepum_stream_event& event);
  void end_launch();
  void decide(const std::uint8_t* record, std::size_t bytes);
  void round();
  void answer(const deepum_command& command, deepum_moved_status status);
  // Running free: what the mover's thread does by now has been done, and what it found is told.
  void catch_up();
  bool runs_free() const { return options_.mode == DEEPUM_SIMULATION_FREE; }
  void marker_recorded();
  void before_handout(std::uint64_t bytes);
  void note_decisions(std::span<const deepum_command> commands);
  bool watches() const { return options_.keep_launches != 0 || options_.keep_activities != 0; }
  void allocate(const deepum_allocate_event& event);
  void release(const deepum_free_event& event);
  void execute(const deepum_execute_event& event);
  void synchronise(const deepum_stream_event& event);
  void look_after_launches();
  void look_for_faults();
  bool reads_memory() const;
  std::uint32_t marker_interval() const;
  void look_at_memory_after_launches(std::uint32_t device);
  void look_at_memory(std::uint32_t device);
  void tell_faults(const std::vector<um_model::Fault>& faults);
  void tell_progress();
  bool times_launches() const;
  void tell_waited(std::uint32_t stream, std::uint64_t completed);
  void emit(deepum_event_header& header);
  void default_work(const deepum_execute_event& event);

  bool do_work(const deepum_work& work, std::span<const deepum_work_access> accesses);
  void launch(const deepum_work& work, std::span<const deepum_work_access> accesses);
  void copy_inside(um_model::Stream on, std::span<const um_model::Access> accesses);
  void program_call() { engine_.program_call(); }
  um_model::Range range(const deepum_work_access& access);
  std::vector<um_model::Range> ranges(std::span<const deepum_work_access> accesses);
  void mark(deepum_simulation_mark_kind kind, double time_ns);

  um_model::Machine machine_;
  deepum_simulation_options options_;
  um_model::Engine engine_;
  CoreHandle core_;
  Markers markers_;
  Places places_;
  Mover mover_;
  MoverThread mover_thread_;  // running free
  bool observing_;            // faults: from the start, when nothing is known
  std::uint32_t launches_since_look_ = 0;
  std::uint32_t launches_since_reading_ = 0;
  std::optional<um_model::Event> first_look_;
  // Launches that are timed: the one before was done, and their moves were.
  struct Stall {
    std::uint32_t stream;
    std::uint64_t sequence;
    um_model::Event reached, ready;
  };
  std::deque<Stall> stalls_;
  std::array<double, DEEPUM_MAX_STREAMS> waited_ns_{};

  WorkObjects objects_;
  bool work_waits_ = false;                      // waits are in the work, not in the events
  const std::uint8_t* checked_until_ = nullptr;  // end of the work that was found to be sound

  std::vector<std::uint64_t> record_;  // the event at hand
  std::uint64_t sequence_ = 0;         // of the latest event given to the core
  std::uint64_t next_sequence_ = 0;    // where the next event lies
  // Event: until the mover has processed it nobody waits for it again.
  std::uint64_t awaited_in_vain_ = 0;
  std::uint64_t shift_ = 0;   // between the trace's sequences and those, modulo 2^64
  std::uint64_t traced_ = 0;  // the trace's sequence of the event at hand
  std::uint64_t launches_ = 0;
  const deepum_execute_event* executing_ = nullptr;
  std::vector<std::uint64_t> executing_record_;
  bool worked_ = false;                     // the event at hand has had work of its own
  std::optional<um_model::Event> reached_;  // of the launch at hand, if launches are watched

  std::deque<deepum_simulation_mark> marks_;
  // mark, and the event behind its launch.
  std::vector<std::pair<std::size_t, um_model::Event>> step_ends_;
  std::vector<Timed> timed_;
  std::vector<deepum_command> commands_;
  std::vector<deepum_activity> decisions_;
  std::vector<deepum_activity> activities_;  // not yet taken
  std::size_t activities_taken_ = 0, holds_reported_ = 0;
};

}  // namespace deepum::simulate
