// The decision core: event records in, commands out. It owns the parts and the order in which an
// event passes them, and decides nothing itself. Deterministic; no clock, no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "command_stream.hpp"
#include "core.h"
#include "extras/copy_back.hpp"
#include "extras/host_groups.hpp"
#include "extras/host_residents.hpp"
#include "extras/invalidation.hpp"
#include "iteration/iteration_detector.hpp"
#include "memory/address_space.hpp"
#include "placement/chain_planner.hpp"
#include "placement/departures.hpp"
#include "placement/device_memory.hpp"
#include "placement/growth_forecast.hpp"
#include "placement/placer.hpp"
#include "placement/plan_follower.hpp"
#include "placement/pre_eviction.hpp"
#include "prediction/execution_table.hpp"
#include "prediction/history.hpp"
#include "prediction/iteration_meter.hpp"
#include "prediction/launch_chain.hpp"
#include "prediction/launch_clock.hpp"
#include "prediction/launch_predictor.hpp"
#include "prediction/learning_monitor.hpp"
#include "prediction/use_recorder.hpp"
#include "prediction/use_tracker.hpp"
#include "prediction/use_trials.hpp"

namespace deepum::core {

constexpr std::uint32_t kMostPrefetchDegree = 1u << 20;

class Core final : private ContentListener {
 public:
  // The factories make other policies than those that settings name.
  explicit Core(const deepum_core_settings& settings,
                const EvictionPolicyFactory& make_order = make_eviction_policy,
                const LaunchPredictorFactory& make_predictor = make_launch_predictor);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // See core.h.
  std::uint64_t process(const std::uint8_t* events, std::size_t bytes);
  std::size_t take_commands(deepum_command* commands, std::size_t most) {
    return commands_.take(commands, most);
  }
  deepum_core_statistics statistics() const;
  bool wants_faults() const;
  bool wants_reads() const;
  bool wants_free_memory() const { return wants_free_memory_; }
  std::uint32_t block_state(std::uint32_t slot, std::uint64_t block) const;
  void follow_plan(Plan plan) { planner_.follow(std::move(plan)); }
  bool name_block(std::uint32_t slot, std::uint32_t index, std::uint64_t& name,
                  std::uint32_t& place);
  UseRecorder& recorder() { return recorder_; }
  const UseRecorder& recorder() const { return recorder_; }
  LaunchClock& launch_clock() { return launch_clock_; }
  const LaunchClock& launch_clock() const { return launch_clock_; }
  const IterationDetector& iteration() const { return detector_; }
  std::vector<std::uint8_t> save_tables() const;
  bool load_tables(std::span<const std::uint8_t> bytes);

 private:
  // Events; false: malformed (core_session.cpp, core_launch.cpp, core_memory_events.cpp,
  // core_settings.cpp).
  bool dispatch(const deepum_event_header* header);
  bool on_launch(const deepum_execute_event& event, std::span<const deepum_block_range> ranges);
  void on_device(const deepum_device_event& event);
  bool on_allocate(const deepum_allocate_event& event);
  bool on_program_prefetch(const deepum_program_event& event);
  bool on_program_advise(const deepum_program_event& event);
  bool on_fault(const deepum_fault_event& event);
  bool on_progress(const deepum_progress_event& event);
  void on_moved(const deepum_moved_event& event);
  void on_usage(const deepum_usage_event& event);
  void on_lost(const deepum_lost_event& event);
  bool on_setting(const deepum_setting_event& event);

  // Parts of a launch.
  bool resolve(const deepum_execute_event& event, std::span<const deepum_block_range> ranges,
               std::uint64_t& hash);
  bool exceeds_capacity() const;  // the blocks of the launch at hand, of a device, alone
  void begin_launch();
  Execution& learn_accesses(const deepum_execute_event& event, std::uint64_t hash);
  void follow(const Launch& launch, const Execution& execution);
  void note_uses(const deepum_execute_event& event);

  // Parts of a changed setting (core_settings.cpp).
  void set_budget(DeviceMemory& device, std::uint64_t bytes);
  bool set_policy(std::uint64_t policy);

  // What a command was about is not so.
  void undo(const deepum_command& given, UmBlock& block, bool refused);
  void forget_tables();
  void forget_launches();
  void forget_chain();

  void content_died(UmBlock&, bool) override {}
  void content_begins(UmBlock&) override {}
  void memory_gone(Allocation& allocation) override;
  void naming() override;

  deepum_core_settings settings_;
  const std::uint32_t first_policy_;  // as the session began
  deepum_core_statistics statistics_{};
  Clock now_;
  CommandStream commands_;
  AddressSpace memory_;
  Devices devices_;

  ExecutionTable executions_;
  LaunchHistory history_;
  Context context_;  // of the latest launches
  std::unique_ptr<LaunchPredictor> predictor_;
  LaunchChain chain_;
  IterationMeter iterations_;
  IterationDetector detector_;
  LearningMonitor learning_;
  UseTrials trials_;

  GrowthForecast growth_;
  Departures departures_;
  std::unique_ptr<PreEviction> room_;
  Placer placer_;
  ChainPlanner chain_planner_;
  PlanFollower planner_;

  Invalidation invalidation_;
  CopyBack copy_back_;
  UseTracker uses_;
  HostResidents host_residents_;
  HostGroups host_groups_;

  UseRecorder recorder_;
  LaunchClock launch_clock_;

  // Of the launch at hand: its accesses, by place and by name, and how many launches before it the
  // named memory was handed out.
  std::vector<Access> accesses_;
  std::vector<BlockRun> runs_;
  std::vector<std::uint32_t> ages_;
  std::vector<std::uint64_t> foretold_;  // by a profile: most blocks that were allocated, by device
  bool wants_free_memory_ = false;
};

}  // namespace deepum::core
