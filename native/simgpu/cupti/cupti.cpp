// libcupti on the simulated GPU: who is subscribed, and the activity records of GPU page faults.
// Nothing else is recorded.
#include "cupti_abi.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>

#include "fault_feed.h"

#define API extern "C" __attribute__((visibility("default"))) int

// Of the library that this object is linked into; stubs.py defines it.
extern "C" const std::uint32_t deepum_sim_cupti_version;

namespace {

using TakeFaults = decltype(deepum_sim_take_faults);

struct State {
  std::mutex mutex;
  bool subscribed = false;
  deepum_cupti_buffer_requested requested = nullptr;
  deepum_cupti_buffer_completed completed = nullptr;
  bool faults_configured = false;
  bool enabled = false;
  std::deque<deepum_cupti_counter> records;  // not delivered yet
  std::uint64_t dropped = 0;                 // since it was last asked for
  std::uint64_t dropped_by_driver = 0;       // of its count, what is in `dropped` already
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void* deepum_sim_cupti_state() {
  static auto* const made = new State;  // outlives every exit handler that may still call
  return made;
}

namespace {

// There is one CUPTI in a process, whichever of the two libraries is asked: both may be preloaded,
// and a profiler takes the one that it was linked with. They are of one build, so that what the
// first that is loaded has is the other's too.
State& state() {
  static auto* const shared = [] {
    for (const char* const name : {"libcupti.so.13", "libcupti.so.12"}) {
      if (void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
        auto* const find = reinterpret_cast<decltype(&deepum_sim_cupti_state)>(
            dlsym(library, "deepum_sim_cupti_state"));
        dlclose(library);  // it was loaded before, and stays
        if (find != nullptr) return static_cast<State*>(find());
      }
    }
    return static_cast<State*>(deepum_sim_cupti_state());
  }();
  return *shared;
}

// The one handle; clients never look into it.
void* subscriber_of(State& state) { return &state; }

// The stand-in driver, if the program uses one: not loaded on this library's behalf, which is
// preloaded into processes without CUDA too.
TakeFaults* driver() {
  static std::atomic<TakeFaults*> known{nullptr};
  if (TakeFaults* const found = known.load(std::memory_order_relaxed)) return found;
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  auto* const found = reinterpret_cast<TakeFaults*>(dlsym(library, "deepum_sim_take_faults"));
  dlclose(library);  // it is never unloaded
  known.store(found, std::memory_order_relaxed);
  return found;
}

// Keeps what happened since the last time if that is enabled, else forgets it. False: the driver is
// not initialised. Lock held.
bool take(State& state) {
  TakeFaults* const take_faults = driver();
  const auto keep = [](void* data, const deepum_sim_fault* fault) {
    deepum_cupti_counter record{};
    record.kind = DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER;
    record.counter_kind = DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT;
    record.value = fault->faults;
    record.start = fault->start_ns;
    record.end = fault->end_ns;
    record.address = fault->address;
    record.source = static_cast<std::uint32_t>(fault->device);
    record.process = static_cast<std::uint32_t>(getpid());
    record.flags = fault->write != 0 ? DEEPUM_CUPTI_ACCESS_WRITE : DEEPUM_CUPTI_ACCESS_READ;
    static_cast<State*>(data)->records.push_back(record);
  };
  std::uint64_t dropped = state.dropped_by_driver;
  if (take_faults == nullptr || take_faults(state.enabled ? +keep : nullptr, &state, &dropped) == 0)
    return false;
  state.dropped += state.enabled ? dropped - state.dropped_by_driver : 0;
  state.dropped_by_driver = dropped;
  return true;
}

int subscribe(void** subscriber, deepum_cupti_callback callback) {
  if (subscriber == nullptr || callback == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  State& s = state();
  const std::lock_guard guard(s.mutex);
  if (s.subscribed) return DEEPUM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  s.subscribed = true;
  *subscriber = subscriber_of(s);
  return DEEPUM_CUPTI_SUCCESS;
}

}  // namespace

API cuptiGetVersion(std::uint32_t* version) {
  if (version == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  *version = deepum_sim_cupti_version;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiGetResultString(int result, const char** text) {
  static constexpr struct {
    int result;
    const char* text;
  } kTexts[] = {
      {DEEPUM_CUPTI_SUCCESS, "CUPTI_SUCCESS"},
      {DEEPUM_CUPTI_ERROR_INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"},
      {DEEPUM_CUPTI_ERROR_INVALID_OPERATION, "CUPTI_ERROR_INVALID_OPERATION"},
      {DEEPUM_CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
      {DEEPUM_CUPTI_ERROR_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"},
      {DEEPUM_CUPTI_ERROR_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"},
      {DEEPUM_CUPTI_ERROR_NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED"},
      {DEEPUM_CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED, "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED"},
      {DEEPUM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
       "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
      {DEEPUM_CUPTI_ERROR_UNKNOWN, "CUPTI_ERROR_UNKNOWN"},
  };
  if (text == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  for (const auto& known : kTexts) {
    if (known.result == result) {
      *text = known.text;
      return DEEPUM_CUPTI_SUCCESS;
    }
  }
  return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
}

API cuptiSubscribe(void** subscriber, deepum_cupti_callback callback, void*) {
  return subscribe(subscriber, callback);
}
API cuptiSubscribe_v2(void** subscriber, deepum_cupti_callback callback, void*, void*) {
  return subscribe(subscriber, callback);
}

API cuptiUnsubscribe(void* subscriber) {
  State& s = state();
  const std::lock_guard guard(s.mutex);
  if (subscriber != subscriber_of(s) || !s.subscribed) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  s.subscribed = false;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityRegisterCallbacks(deepum_cupti_buffer_requested requested,
                                   deepum_cupti_buffer_completed completed) {
  if (requested == nullptr || completed == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  State& s = state();
  const std::lock_guard guard(s.mutex);
  s.requested = requested;
  s.completed = completed;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityConfigureUnifiedMemoryCounter(deepum_cupti_counter_config* configs,
                                               std::uint32_t count) {
  if (configs == nullptr || count == 0) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (configs[i].kind < 1 || configs[i].kind > DEEPUM_CUPTI_COUNTER_LAST)
      return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  }
  State& s = state();
  const std::lock_guard guard(s.mutex);
  if (!take(s)) return DEEPUM_CUPTI_ERROR_NOT_INITIALIZED;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (configs[i].kind != DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT)
      return DEEPUM_CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED;
  }
  s.faults_configured = configs[count - 1].enable != 0;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityEnable(int kind) {
  if (kind != DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER) return DEEPUM_CUPTI_ERROR_INVALID_KIND;
  State& s = state();
  const std::lock_guard guard(s.mutex);
  if (!s.faults_configured) return DEEPUM_CUPTI_ERROR_INVALID_OPERATION;
  take(s);  // records are of what happens from here on
  s.enabled = true;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityDisable(int kind) {
  if (kind != DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER) return DEEPUM_CUPTI_ERROR_INVALID_KIND;
  State& s = state();
  const std::lock_guard guard(s.mutex);
  take(s);  // what has happened until here is delivered by the next flush
  s.enabled = false;
  return DEEPUM_CUPTI_SUCCESS;
}

// The client's functions run without the lock: they may call CUPTI.
API cuptiActivityFlushAll(std::uint32_t) {
  State& s = state();
  std::unique_lock guard(s.mutex);
  if (s.requested == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_OPERATION;
  if (s.enabled) take(s);
  while (!s.records.empty()) {
    const auto requested = s.requested;
    const auto completed = s.completed;
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most = 0;
    guard.unlock();
    requested(&buffer, &bytes, &most);
    guard.lock();
    const std::size_t room = buffer != nullptr ? bytes / sizeof(deepum_cupti_counter) : 0;
    const std::size_t count = std::min(s.records.size(), most != 0 ? std::min(room, most) : room);
    if (count == 0) {  // as CUPTI does where the client gives no buffer
      s.dropped += s.records.size();
      s.records.clear();
      break;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(buffer + i * sizeof(deepum_cupti_counter), &s.records[i],
                  sizeof(deepum_cupti_counter));
    }
    s.records.erase(s.records.begin(), s.records.begin() + static_cast<std::ptrdiff_t>(count));
    guard.unlock();
    completed(nullptr, 0, buffer, bytes, count * sizeof(deepum_cupti_counter));
    guard.lock();
  }
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes,
                               deepum_cupti_activity** record) {
  if (buffer == nullptr || record == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  std::uint8_t* const next =
      *record == nullptr ? buffer
                         : reinterpret_cast<std::uint8_t*>(*record) + sizeof(deepum_cupti_counter);
  if (next < buffer || next + sizeof(deepum_cupti_counter) > buffer + valid_bytes)
    return DEEPUM_CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<deepum_cupti_activity*>(next);
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiActivityGetNumDroppedRecords(void*, std::uint32_t, std::size_t* dropped) {
  if (dropped == nullptr) return DEEPUM_CUPTI_ERROR_INVALID_PARAMETER;
  State& s = state();
  const std::lock_guard guard(s.mutex);
  *dropped = s.dropped;
  s.dropped = 0;
  return DEEPUM_CUPTI_SUCCESS;
}

API cuptiFinalize() {
  State& s = state();
  const std::lock_guard guard(s.mutex);
  s.subscribed = s.faults_configured = s.enabled = false;
  s.requested = nullptr;
  s.completed = nullptr;
  s.records.clear();
  return DEEPUM_CUPTI_SUCCESS;
}
