// CUPTI's activity records of page faults (CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER). CUPTI has
// one pair of buffer callbacks and one subscriber a process, so it is left to whoever else wants
// it: a subscription is only tried, to see that nobody has one, and not kept.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "cupti_library.hpp"
#include "fault_source.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"
#include "records.h"

namespace deepum::hooks {
namespace {

constexpr std::size_t kBufferBytes = 256u << 10;  // about 2,500 records
constexpr std::size_t kMostWaiting = 1u << 17;    // faults that nobody has taken

std::uint8_t access_of(std::uint32_t type) noexcept {
  switch (type) {
    case DEEPUM_CUPTI_ACCESS_READ:
      return DEEPUM_FAULT_READ;
    case DEEPUM_CUPTI_ACCESS_WRITE:
      return DEEPUM_FAULT_WRITE;
    case DEEPUM_CUPTI_ACCESS_ATOMIC:
      return DEEPUM_FAULT_ATOMIC;
    default:
      return 0;
  }
}

// CUPTI calls back on any thread, its own included, and until long after it was disabled.
struct Delivered {
  std::mutex mutex;
  std::vector<ObservedFault> faults;
};

void buffer_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
  // Null: CUPTI drops records and counts them.
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *most_records = 0;
}

void buffer_completed(void*, std::uint32_t, std::uint8_t* buffer, std::size_t,
                      std::size_t valid_bytes) {
  const Cupti* const cupti = load_cupti();
  Delivered& delivered = immortal<Delivered>();
  try {
    const std::lock_guard guard(delivered.mutex);
    deepum_cupti_activity* at = nullptr;
    while (buffer && valid_bytes != 0 &&
           cupti->ActivityGetNextRecord(buffer, valid_bytes, &at) == DEEPUM_CUPTI_SUCCESS) {
      if (at->kind != DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER ||
          delivered.faults.size() >= kMostWaiting) {
        continue;
      }
      const auto* const record = reinterpret_cast<const deepum_cupti_counter*>(at);
      if (record->counter_kind == DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT &&
          record->flags != DEEPUM_CUPTI_ACCESS_PREFETCH) {
        delivered.faults.push_back(
            {record->address, record->value, record->source, access_of(record->flags)});
      }
    }
  } catch (...) {  // no memory: these faults are missed
  }
  std::free(buffer);
}

void nothing(void*, std::int32_t, std::uint32_t, const void*) {}

class CuptiFaultSource final : public FaultSource {
 public:
  const char* name() const noexcept override { return "CUPTI"; }
  const char* why() const noexcept override { return why_; }
  Start start() noexcept override;
  bool take(std::vector<ObservedFault>& faults) override;
  void stop() noexcept override;

 private:
  Start refused(const char* function, int error) noexcept {
    std::snprintf(why_, sizeof why_, "%s answered with error %d", function, error);
    return Start::kRefused;
  }
  const Cupti* cupti_ = nullptr;
  char why_[96] = "";
};

// CUPTI calls the driver, which is not the program's doing: hence the guards.
FaultSource::Start CuptiFaultSource::start() noexcept {
  Inside guard;
  cupti_ = load_cupti();
  if (!cupti_) {
    std::snprintf(why_, sizeof why_, "no libcupti.so.13 or .12 was found");
    return Start::kAbsent;
  }
  void* subscriber = nullptr;
  int error = cupti_->Subscribe(&subscriber, nothing, nullptr);
  if (error == DEEPUM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    std::snprintf(why_, sizeof why_, "a profiler holds CUPTI");
    return Start::kHeld;
  }
  if (error != DEEPUM_CUPTI_SUCCESS) {
    return refused("cuptiSubscribe", error);
  }
  cupti_->Unsubscribe(subscriber);
  if (error = cupti_->ActivityRegisterCallbacks(buffer_requested, buffer_completed);
      error != DEEPUM_CUPTI_SUCCESS) {
    return refused("cuptiActivityRegisterCallbacks", error);
  }
  deepum_cupti_counter_config config{DEEPUM_CUPTI_SCOPE_PROCESS_SINGLE_DEVICE,
                                     DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT, 0, 1};
  if (error = cupti_->ActivityConfigureUnifiedMemoryCounter(&config, 1);
      error != DEEPUM_CUPTI_SUCCESS) {
    return refused("cuptiActivityConfigureUnifiedMemoryCounter", error);
  }
  if (error = cupti_->ActivityEnable(DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER);
      error != DEEPUM_CUPTI_SUCCESS) {
    return refused("cuptiActivityEnable", error);
  }
  return Start::kOn;
}

bool CuptiFaultSource::take(std::vector<ObservedFault>& faults) {
  {
    Inside guard;
    cupti_->ActivityFlushAll(0);
  }
  Delivered& delivered = immortal<Delivered>();
  const std::lock_guard guard(delivered.mutex);
  faults.insert(faults.end(), delivered.faults.begin(), delivered.faults.end());
  delivered.faults.clear();
  return true;
}

void CuptiFaultSource::stop() noexcept {
  Inside guard;
  cupti_->ActivityDisable(DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER);
  // Our buffers come back to us, not to whoever registers next.
  cupti_->ActivityFlushAll(DEEPUM_CUPTI_FLUSH_FORCED);
}

}  // namespace

FaultSource& cupti_fault_source() noexcept { return immortal<CuptiFaultSource>(); }

}  // namespace deepum::hooks
