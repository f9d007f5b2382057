#include "observed_faults.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "allocation_table.hpp"
#include "allocations.hpp"
#include "contexts.hpp"
#include "driver.hpp"
#include "fault_runs.hpp"
#include "fault_source.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "message.hpp"
#include "real_driver.hpp"
#include "records.h"
#include "relaxed.hpp"
#include "session.hpp"
#include "shim_settings.hpp"
#include "stream_markers.hpp"
#include "threads.hpp"

namespace deepum::hooks {

std::atomic<bool> faults_taken_here{false};

namespace {

constexpr long kLookNanoseconds = 10'000'000;   // between looks of the thread
constexpr long kIdleNanoseconds = 100'000'000;  // while nothing is observed
constexpr long kNapNanoseconds = 1'000'000;
constexpr int kMostNaps = 2000;  // for a call that is under way, 2 s

enum class Phase { kIdle, kObserving, kOver };

std::atomic<bool> begun{false};
std::atomic<bool> given_away{false};  // CUPTI, to the program
std::atomic<bool> over{false};        // set first, so that nobody begins a call
std::atomic<std::uint32_t> launches{0};

// One thread at a time: whoever finds it taken goes on, since that one looks.
struct Watch {
  ForkableMutex mutex;
  Phase phase = Phase::kIdle;
  std::size_t next = 0;           // of sources(): those before it cannot be had
  FaultSource* source = nullptr;  // while faults are observed, and not times alone
  std::vector<ObservedFault> faults;
};
Watch& watch() noexcept { return immortal<Watch>(); }

// In the order in which they are tried. CUPTI comes first: its interface is public, that of
// uvm-tools is not.
struct Sources {
  FaultSource* each[2];
  std::size_t count;
};
Sources sources() noexcept {
  switch (runtime::settings().fault_source) {
    case runtime::FaultSources::kCupti:
      return {{&cupti_fault_source(), nullptr}, 1};
    case runtime::FaultSources::kUvmTools:
      return {{&uvm_tools_fault_source(), nullptr}, 1};
    case runtime::FaultSources::kAuto:
      break;
  }
  return {{&cupti_fault_source(), &uvm_tools_fault_source()}, 2};
}

void nap(long nanoseconds) noexcept {
  const timespec time{0, nanoseconds};
  ::nanosleep(&time, nullptr);
}

// What lies in no managed allocation is left out, memory that has ended too.
void tell(const std::vector<ObservedFault>& faults) {
  struct Report {
    const std::vector<ObservedFault>& faults;
    std::vector<FaultPlace> places;
  } report{faults, {}};
  report.places.reserve(faults.size());
  const auto body = [](void* data) {
    auto& [all, places] = *static_cast<Report*>(data);
    for (const ObservedFault& fault : all) {
      runtime::Extent extent;
      if (fault.device < DEEPUM_MAX_DEVICES &&
          runtime::Allocations::instance().range_of(fault.address, 1, &extent)) {
        const std::uint64_t first =
            extent.range >> DEEPUM_RANGE_FIRST_SHIFT & ((1ull << DEEPUM_RANGE_FIRST_BITS) - 1);
        places.push_back({fault.device, extent.range >> DEEPUM_RANGE_SLOT_SHIFT, first,
                          fault.faults, fault.access});
      }
    }
    deepum::tell_faults(places, [](deepum_fault_event& event) { runtime::emit(&event.header); });
  };
  runtime::Allocations::instance().while_all_stays(body, &report);
}

void end(Watch& watch) noexcept {
  watch.phase = Phase::kOver;
  over.store(true);
  faults_taken_here.store(false);
}

// The first source that can be had. `observed_before`: what became of the one before it, or null.
void start(Watch& watch, const char* observed_before) noexcept {
  const Sources all = sources();
  char reasons[400] = "";
  std::size_t length = 0;
  const auto reason = [&](const char* name, const char* why) {
    const int written = std::snprintf(reasons + length, sizeof reasons - length, "%s%s: %s",
                                      length != 0 ? "; " : "", name, why);
    length = std::min(length + static_cast<std::size_t>(std::max(written, 0)), sizeof reasons - 1);
  };
  // Whoever asked for one, or had one, is told that there is none; else only that somebody has
  // taken it.
  bool aloud = observed_before || runtime::settings().fault_source != runtime::FaultSources::kAuto;
  if (observed_before) {
    reason(all.each[watch.next]->name(), observed_before);
    ++watch.next;
  }
  for (; watch.next < all.count; ++watch.next) {
    FaultSource& source = *all.each[watch.next];
    if (given_away.load() && &source == &cupti_fault_source()) {
      aloud = true;
      reason(source.name(), "a profiler holds CUPTI");
      continue;
    }
    const FaultSource::Start started = source.start();
    if (started == FaultSource::Start::kOn) {
      watch.source = &source;
      watch.phase = Phase::kObserving;
      if (length != 0) {
        runtime::say(runtime::Level::kInformation, "faults are observed through %s: %s",
                     source.name(), reasons);
      }
      return;
    }
    aloud |= started == FaultSource::Start::kHeld;
    reason(source.name(), source.why());
  }
  runtime::say(aloud ? runtime::Level::kWarning : runtime::Level::kInformation,
               "faults are not observed%s: %s", observed_before ? " any more" : "", reasons);
  end(watch);
}

bool times_alone() noexcept { return runtime::settings().faults == runtime::Faults::kTimes; }

// False: the source is of no use any more.
bool take(Watch& watch) noexcept {
  if (!watch.source) {
    runtime::begin_progress();
    runtime::tell_progress();
    return true;
  }
  bool sound = true;
  try {
    watch.faults.clear();
    runtime::begin_progress();
    sound = watch.source->take(watch.faults);
    runtime::tell_progress();
    tell(watch.faults);
  } catch (const std::bad_alloc&) {  // these are missed
  }
  return sound;
}

void stop(Watch& watch) noexcept {
  if (watch.source) {
    watch.source->stop();
  }
}

// Under the lock.
void look(Watch& watch) noexcept {
  if (over.load() || watch.phase == Phase::kOver) {
    return;
  }
  const int kept = errno;
  const bool wanted = runtime::faults_wanted();
  if (watch.phase == Phase::kObserving) {
    if (!take(watch)) {
      start(watch, watch.source->why());
    } else if (!wanted) {
      stop(watch);
      watch.phase = Phase::kIdle;
    }
  } else if (wanted && times_alone()) {
    watch.phase = Phase::kObserving;
    take(watch);  // times are counted from here on
  } else if (wanted) {
    start(watch, nullptr);
  }
  errno = kept;
}

void* watch_by_clock(void* context) noexcept {
  const runtime::Relaxed mode;
  Watch& seen = watch();
  if (runtime::driver().CtxSetCurrent) {  // to ask how far its streams are
    runtime::driver().CtxSetCurrent(static_cast<CUcontext>(context));
  }
  while (!over.load()) {
    bool observing = false;
    if (seen.mutex.try_lock()) {
      look(seen);
      observing = seen.phase == Phase::kObserving;
      seen.mutex.unlock();
    }
    nap(observing ? kLookNanoseconds : kIdleNanoseconds);
  }
  return nullptr;
}

bool start_watching() noexcept {
  pthread_t thread{};
  if (!runtime::start_thread(&thread, "deepum-faults", watch_by_clock,
                             runtime::current_context())) {
    return false;
  }
  ::pthread_detach(thread);
  return true;
}

// For good; returns once no call of ours is under way.
void leave_source(const char* why) noexcept {
  if (over.exchange(true)) {
    return;
  }
  faults_taken_here.store(false);
  Watch& seen = watch();
  seen.mutex.lock();
  if (seen.phase == Phase::kObserving) {
    take(seen);
    stop(seen);
    runtime::say(runtime::Level::kWarning, "%s are not observed any more: %s",
                 times_alone() ? "times of launches" : "faults", why);
  }
  seen.phase = Phase::kOver;
  seen.mutex.unlock();
}

// The driver's own handlers run after this: no call is under way in them, nor begins.
void leave_at_exit() {
  over.store(true);
  faults_taken_here.store(false);
  Watch& seen = watch();
  for (int naps = 0; naps < kMostNaps; ++naps) {
    if (seen.mutex.try_lock()) {
      seen.mutex.unlock();
      return;
    }
    nap(kNapNanoseconds);
  }
}

}  // namespace

void begin_observing_faults() noexcept {
  if (begun.load(std::memory_order_relaxed)) [[likely]] {
    return;
  }
  if (runtime::settings().faults == runtime::Faults::kOff || !runtime::has_session() ||
      begun.exchange(true)) {
    return;
  }
  std::atexit(leave_at_exit);
  look_for_faults_now();  // before the first launch
  if (runtime::settings().lock_step) {
    faults_taken_here.store(!over.load());
  } else if (!over.load() && !start_watching()) {
    leave_source("no thread can be made");
  }
}

void look_for_faults_now() noexcept {
  Watch& seen = watch();
  if (bypass() || !seen.mutex.try_lock()) {
    return;
  }
  launches.store(0, std::memory_order_relaxed);
  look(seen);
  seen.mutex.unlock();
}

void look_for_faults_after_launches() noexcept {
  if (launches.fetch_add(1, std::memory_order_relaxed) + 1 >= runtime::settings().fault_interval) {
    look_for_faults_now();
  }
}

void give_cupti_away() noexcept {
  if (bypass() || given_away.exchange(true)) {
    return;
  }
  Watch& seen = watch();
  seen.mutex.lock();
  if (seen.phase == Phase::kObserving && seen.source == &cupti_fault_source() && !over.load()) {
    const int kept = errno;
    take(seen);
    seen.source->stop();
    start(seen, "a profiler takes CUPTI");
    errno = kept;
  }
  seen.mutex.unlock();
}

// Nor is CUPTI of any use there.
void abandon_faults_in_child() noexcept {
  over.store(true);
  faults_taken_here.store(false);
  abandon_uvm_tools_in_child();
  watch().mutex.renew();
}

}  // namespace deepum::hooks
