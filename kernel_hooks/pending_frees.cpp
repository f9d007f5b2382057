#include "pending_frees.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "devices.hpp"
#include "driver.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "launches.hpp"
#include "memory.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

struct Pending {
  CUdeviceptr address;
  std::uint64_t bytes;  // as charged
  CUevent done;
  CUcontext context;
  std::uint64_t incarnation;  // of the stream; 0: nobody takes it
  int device;
};

struct PendingFrees {
  ForkableMutex mutex;
  std::vector<Pending> list;
};
PendingFrees& pending_frees() noexcept { return immortal<PendingFrees>(); }
std::atomic<std::size_t> waiting{0};

void finish(const Pending& pending) noexcept {
  const runtime::Driver& driver = runtime::driver();
  {
    Inside guard;
    if (pending.done && driver.EventDestroy) {
      driver.EventDestroy(pending.done);
    }
  }
  if (ready(real<false>().cuMemFree_v2)) {
    runtime::before_locked_wait();
    forward(real<false>().cuMemFree_v2, pending.address);
  }
  refund(pending.device, pending.bytes, true);
}

// Takes out what belongs to the current context and is done, or all of it.
std::vector<Pending> taken_out(bool all) {
  const CUcontext context = current_context();
  std::vector<Pending> out;
  std::vector<Pending> candidates;
  {
    const std::lock_guard lock(pending_frees().mutex);
    auto& list = pending_frees().list;
    const auto mine = std::stable_partition(list.begin(), list.end(), [&](const Pending& pending) {
      return pending.context != context;
    });
    candidates.assign(mine, list.end());
    list.erase(mine, list.end());
  }
  const runtime::Driver& driver = runtime::driver();
  std::vector<Pending> left;
  for (const Pending& pending : candidates) {
    CUresult answer = CUDA_SUCCESS;
    {
      Inside guard;
      answer = all ? driver.EventSynchronize(pending.done) : driver.EventQuery(pending.done);
    }
    (answer == CUDA_SUCCESS ? out : left).push_back(pending);
  }
  const std::lock_guard lock(pending_frees().mutex);
  pending_frees().list.insert(pending_frees().list.end(), left.begin(), left.end());
  waiting.store(pending_frees().list.size());
  return out;
}

}  // namespace

CUresult free_in_order(const StreamRef& stream, const runtime::Allocation& allocation) noexcept
    try {
  const runtime::Driver& driver = runtime::driver();
  CUevent done = nullptr;
  {
    Inside guard;
    if (!driver.EventCreate || !driver.EventRecord || !driver.EventQuery ||
        !driver.EventSynchronize ||
        driver.EventCreate(&done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
      done = nullptr;
    } else if (driver.EventRecord(done, stream.handle) != CUDA_SUCCESS) {
      driver.EventDestroy(done);
      done = nullptr;
    }
  }
  const Pending pending{
      allocation.base,   charged_bytes(allocation), done,
      current_context(), stream.incarnation,        static_cast<int>(allocation.device)};
  if (!done) {
    // cuMemFree waits for the device by itself.
    runtime::before_locked_wait();
    const CUresult result = forward(real<false>().cuMemFree_v2, allocation.base);
    refund(pending.device, pending.bytes, true);
    return result;
  }
  const std::lock_guard lock(pending_frees().mutex);
  pending_frees().list.push_back(pending);
  waiting.store(pending_frees().list.size());
  return CUDA_SUCCESS;
} catch (...) {
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUdeviceptr take_pending(const StreamRef& stream, std::uint64_t bytes) noexcept {
  if (waiting.load(std::memory_order_relaxed) == 0 || stream.incarnation == 0) {
    return 0;
  }
  Pending found{};
  {
    const std::lock_guard lock(pending_frees().mutex);
    auto& list = pending_frees().list;
    const auto match = std::find_if(list.begin(), list.end(), [&](const Pending& pending) {
      return pending.incarnation == stream.incarnation && pending.device == stream.device &&
             pending.bytes == bytes;
    });
    if (match == list.end()) {
      return 0;
    }
    found = *match;
    list.erase(match);
    waiting.store(list.size());
  }
  Inside guard;
  if (runtime::driver().EventDestroy) {
    runtime::driver().EventDestroy(found.done);
  }
  return found.address;
}

void free_what_is_done() noexcept try {
  if (waiting.load(std::memory_order_relaxed) == 0 || any_capture()) {
    return;
  }
  for (const Pending& pending : taken_out(false)) {
    finish(pending);
  }
} catch (...) {
  return;
}

void free_all_pending() noexcept try {
  if (waiting.load(std::memory_order_relaxed) == 0 || any_capture()) {
    return;
  }
  for (const Pending& pending : taken_out(true)) {
    finish(pending);
  }
} catch (...) {
  return;
}

void forget_pending_of(CUcontext context) noexcept {
  std::vector<Pending> gone;
  const std::lock_guard lock(pending_frees().mutex);
  auto& list = pending_frees().list;
  const auto mine = std::partition(
      list.begin(), list.end(), [&](const Pending& pending) { return pending.context != context; });
  for (auto pending = mine; pending != list.end(); ++pending) {
    refund(pending->device, pending->bytes, true);
  }
  list.erase(mine, list.end());
  waiting.store(list.size());
}

void abandon_pending_in_child() noexcept {
  if (pending_frees().mutex.renew()) {
    pending_frees().list.clear();
  }
  waiting.store(0);
}

}  // namespace deepum::hooks
