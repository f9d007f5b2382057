// What every EvictionPolicy and every LaunchPredictor has to keep, whatever it decides. Without
// arguments it prints the names of its cases, a line each; with one, it runs that case, and says on
// stderr what does not hold (exit code 1).
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "events.hpp"
#include "no_prediction.hpp"
#include "random_order.hpp"

using namespace deepum::core;

namespace {

int failures = 0;

void check(bool holds, const char* claim, int line) {
  if (!holds && ++failures <= 10) {
    std::fprintf(stderr, "contract.cpp:%d: %s\n", line, claim);
  }
}
#define CHECK(claim) check(claim, #claim, __LINE__)

deepum_core_settings settings(std::uint32_t order,
                              std::uint32_t prediction = DEEPUM_PREDICT_HISTORY) {
  deepum_core_settings made;
  deepum_core_default_settings(&made);
  made.eviction_order = order;
  made.prediction = prediction;
  made.launch_queue = 4;  // chains are placed at every launch
  return made;
}

const std::map<std::string, std::pair<deepum_core_settings, EvictionPolicyFactory>> kOrders{
    {"least-recently-migrated",
     {settings(DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED), make_eviction_policy}},
    {"oldest-last-use", {settings(DEEPUM_EVICT_OLDEST_LAST_USE), make_eviction_policy}},
    {"furthest-next-use", {settings(DEEPUM_EVICT_FURTHEST_NEXT_USE), make_eviction_policy}},
    {"random",
     {settings(DEEPUM_EVICT_OLDEST_LAST_USE),
      [](const deepum_core_settings&, EvictionPolicy::View view) {
        return std::make_unique<RandomOrder>(7, view);
      }}},
};

const std::map<std::string, std::pair<deepum_core_settings, LaunchPredictorFactory>> kPredictors{
    {"tables",
     {settings(DEEPUM_EVICT_FURTHEST_NEXT_USE, DEEPUM_PREDICT_TABLES), make_launch_predictor}},
    {"history", {settings(DEEPUM_EVICT_FURTHEST_NEXT_USE), make_launch_predictor}},
    {"nothing",
     {settings(DEEPUM_EVICT_FURTHEST_NEXT_USE),
      [](const deepum_core_settings&, const ExecutionTable&, const LaunchHistory&) {
        return std::make_unique<NoPrediction>();
      }}},
};

// A policy hears of random events; the test keeps the truth beside it.
void order_alone(const deepum_core_settings& settings, const EvictionPolicyFactory& make) {
  constexpr std::uint32_t kBlocks = 40;
  Clock now;
  now.iteration = 8;
  deepum_core_statistics statistics{};
  DeviceMemory device(0, settings, now, statistics, make);
  deepum_device_event capacity{};
  capacity.header.kind = DEEPUM_EVENT_DEVICE;
  capacity.total_bytes = capacity.capacity_bytes = kBlocks * kBlockBytes;
  device.residency.report_capacity(capacity);
  std::vector<UmBlock> blocks(kBlocks);
  std::set<UmBlock*> resident, dead, prefetched;
  std::mt19937 random(11);
  const auto any = [&](std::uint32_t count) {
    return std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random);
  };
  for (std::uint64_t claim = 1; claim <= 4000; ++claim) {
    UmBlock& block = blocks[any(kBlocks)];
    if (any(3) == 0) {
      ++now.launch;
      device.order->launch_passed();
      std::erase_if(prefetched, [](const UmBlock* each) { return !each->order.prefetched; });
    }
    if (!block.residency.resident) {
      device.residency.take_space(false);
      device.add(block);
      resident.insert(&block);
      if (any(2) == 0) {
        device.order->expected(block, now.launch + 1 + any(20));
        device.order->mark_prefetched(block);
        prefetched.insert(&block);
      }
    } else if (dead.contains(&block)) {
      device.order->will_be_used(block);
      block.content.dead = false;
      dead.erase(&block);
    } else if (const std::uint32_t what = any(4); what == 0) {
      device.order->used(block);
      block.uses.last = now.launch;
    } else if (what == 1) {
      device.order->expected(block, now.launch + 1 + any(20));
    } else if (what == 2) {
      block.content.dead = true;
      device.order->content_died(block, true);
      dead.insert(&block);
    } else {
      block.residency.clean ? device.mark_dirty(block) : device.mark_clean(block);
    }
    std::erase_if(prefetched, [](const UmBlock* each) { return !each->order.prefetched; });
    CHECK(device.order->dead_blocks() == dead.size());
    CHECK(device.order->prefetched_blocks() == prefetched.size());
    if (any(3) != 0) {
      continue;
    }
    blocks[any(kBlocks)].moves.claim = claim;
    const bool last_resort = any(2) == 0, dead_may_leave = any(2) == 0;
    const Victim victim =
        device.order->victim({now.launch + 1, now.launch, claim, last_resort, dead_may_leave});
    const auto free = [&](const UmBlock* each) { return each->moves.claim != claim; };
    const bool dead_free = std::ranges::any_of(dead, free);
    const auto living_free = std::ranges::count_if(
        resident, [&](UmBlock* each) { return free(each) && !dead.contains(each); });
    if (victim.block == nullptr) {
      CHECK(!(dead_may_leave && dead_free));
      continue;
    }
    CHECK(resident.contains(victim.block));
    CHECK(victim.block->moves.claim != claim);
    CHECK(!dead.contains(victim.block) || dead_may_leave);
    CHECK(dead.contains(victim.block) || !(dead_may_leave && dead_free));
    CHECK(living_free > 0 || dead.contains(victim.block));
    device.drop(*victim.block);
    victim.block->content.dead = false;
    resident.erase(victim.block);
    dead.erase(victim.block);
    prefetched.erase(victim.block);
    CHECK(device.residency.used() == resident.size());
  }
  while (!resident.empty()) {  // in the end all of them leave
    UmBlock& block = **resident.begin();
    device.drop(block);
    resident.erase(&block);
  }
  CHECK(device.residency.used() == 0 && device.residency.clean() == 0);
  CHECK(device.order->first() == nullptr);
}

// The block is evicted, not before that launch has run.
bool leaves_behind(const std::vector<deepum_command>& commands, std::uint32_t block,
                   std::uint64_t launch) {
  return std::ranges::any_of(commands, [&](const deepum_command& each) {
    return each.kind == DEEPUM_COMMAND_EVICT && each.cause == launch &&
           each.after_sequence == launch && each.first_block <= block &&
           block < each.first_block + each.block_count;
  });
}

// A core runs a program that does not fit: launches forth and back over its memory. Returns the
// commands.
std::vector<deepum_command> run(const deepum_core_settings& settings,
                                const EvictionPolicyFactory& make_order,
                                const LaunchPredictorFactory& make_predictor, bool checks) {
  constexpr std::uint32_t kLaunches = 24, kEach = 4, kCapacity = 40;
  Core core(settings, make_order, make_predictor);
  Events events;
  events.device(kCapacity);
  events.allocate(0, kLaunches * kEach);
  std::vector<deepum_command> commands;
  for (int step = 0; step < 8; ++step) {
    for (std::uint32_t i = 0; i < 2 * kLaunches; ++i) {
      const std::uint32_t at = i < kLaunches ? i : 2 * kLaunches - 1 - i;
      events.launch(100 + i, 0, at * kEach, kEach);
      const std::vector<std::uint8_t> bytes = events.take();
      core.process(bytes.data(), bytes.size());
      deepum_command command;
      while (core.take_commands(&command, 1) == 1) {
        commands.push_back(command);
      }
      if (checks) {
        for (std::uint32_t block = at * kEach; block < (at + 1) * kEach; ++block) {
          CHECK((core.block_state(0, block) & DEEPUM_BLOCK_RESIDENT) != 0 ||
                leaves_behind(commands, block, events.sequence()));
        }
        CHECK(core.statistics().resident_bytes <= kCapacity * kBlockBytes);
        CHECK(core.statistics().malformed_events == 0);
      }
    }
  }
  return commands;
}

bool same(const std::vector<deepum_command>& a, const std::vector<deepum_command>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(deepum_command)) == 0;
}

void in_a_core(const deepum_core_settings& settings, const EvictionPolicyFactory& make_order,
               const LaunchPredictorFactory& make_predictor) {
  const std::vector<deepum_command> commands = run(settings, make_order, make_predictor, true);
  CHECK(same(commands, run(settings, make_order, make_predictor, false)));
  std::uint64_t evicted = 0, brought = 0, last = 0;
  for (const deepum_command& command : commands) {
    CHECK(command.id > last);
    CHECK(command.after_move < command.id);
    CHECK(command.after_sequence <= command.cause);
    last = command.id;
    evicted += command.kind == DEEPUM_COMMAND_EVICT ? command.block_count : 0;
    brought += command.kind == DEEPUM_COMMAND_PREFETCH || command.kind == DEEPUM_COMMAND_POPULATE
                   ? command.block_count
                   : 0;
  }
  CHECK(evicted > 0 && brought > evicted);
}

std::map<std::string, std::function<void()>> cases() {
  std::map<std::string, std::function<void()>> made;
  for (const auto& [name, order] : kOrders) {
    made["order-alone-" + name] = [order] { order_alone(order.first, order.second); };
    made["order-in-a-core-" + name] = [order] {
      in_a_core(order.first, order.second, make_launch_predictor);
    };
  }
  for (const auto& [name, predictor] : kPredictors) {
    made["predictor-" + name] = [predictor] {
      in_a_core(predictor.first, make_eviction_policy, predictor.second);
    };
  }
  return made;
}

}  // namespace

int main(int count, char** arguments) {
  const auto made = cases();
  if (count < 2) {
    for (const auto& [name, run] : made) {
      std::puts(name.c_str());
    }
    return 0;
  }
  made.at(arguments[1])();
  return failures == 0 ? 0 : 1;
}
