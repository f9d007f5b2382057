#include "ended_work.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "contexts.hpp"
#include "driver.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"
#include "relaxed.hpp"

namespace deepum::hooks {
namespace {

// An event behind the work of a stream that the program has destroyed. Shared by those that wait
// for it.
struct Ended {
  CUevent event = nullptr;
  CUcontext context = nullptr;
  std::atomic<bool> context_ended{false};  // and the event with it

  bool is_done(CUresult (*ask)(CUevent)) const noexcept {
    Inside guard;
    const runtime::Relaxed mode;
    return context_ended.load() || (ask && ask(event) == CUDA_SUCCESS);
  }
  ~Ended() {
    Inside guard;
    if (event && !context_ended.load() && runtime::driver().EventDestroy) {
      runtime::driver().EventDestroy(event);
    }
  }
};
using EndedWork = std::vector<std::shared_ptr<Ended>>;

struct WorkLeft {
  ForkableMutex mutex;
  EndedWork ended;  // whose work may go on
};
WorkLeft& work_left() noexcept { return immortal<WorkLeft>(); }

}  // namespace

bool work_left_is_done(CUcontext context, CUresult (*ask)(CUevent)) {
  EndedWork here, done;
  {
    const std::lock_guard lock(work_left().mutex);
    std::ranges::copy_if(work_left().ended, std::back_inserter(here),
                         [&](const auto& each) { return each->context == context; });
  }
  std::ranges::copy_if(here, std::back_inserter(done),
                       [&](const auto& each) { return each->is_done(ask); });
  const std::lock_guard lock(work_left().mutex);
  std::erase_if(work_left().ended,
                [&](const auto& each) { return std::ranges::find(done, each) != done.end(); });
  return done.size() == here.size();
}

bool leave_work_behind(CUstream stream, CUcontext context) noexcept try {
  const runtime::Driver& driver = runtime::driver();
  Inside guard;
  const runtime::Relaxed mode;
  if (driver.StreamQuery && driver.StreamQuery(stream) == CUDA_SUCCESS) {
    return true;
  }
  const auto made = std::make_shared<Ended>();
  made->context = context;
  {
    std::optional<runtime::Elsewhere> there;
    if (context != runtime::current_context()) {
      there.emplace(context);
    }
    if (!driver.EventCreate || !driver.EventRecord ||
        driver.EventCreate(&made->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
        driver.EventRecord(made->event, stream) != CUDA_SUCCESS) {
      return false;
    }
  }
  work_left_is_done(context, driver.EventQuery);
  const std::lock_guard lock(work_left().mutex);
  work_left().ended.push_back(made);
  return true;
} catch (...) {
  return false;
}

void forget_work_left(CUcontext context) noexcept {
  const std::lock_guard lock(work_left().mutex);
  std::erase_if(work_left().ended, [&](const auto& each) {
    each->context_ended.store(each->context_ended.load() || each->context == context);
    return each->context_ended.load();
  });
}

bool abandon_work_left_in_child() noexcept { return work_left().mutex.renew(); }

}  // namespace deepum::hooks
