#include "advice_server.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "driver.hpp"
#include "relaxed.hpp"
#include "threads.hpp"

namespace deepum::runtime {
namespace {

// A program that frees memory may hold a lock of the driver's that advice needs, while it waits for
// this very stream: then the stream goes on.
constexpr std::chrono::seconds kPatience{2};

}  // namespace

bool AdviceServer::start() noexcept {
  const auto body = [](void* self) -> void* {
    static_cast<AdviceServer*>(self)->run();
    return nullptr;
  };
  started_ = started_ || start_thread(&thread_, "deepum-advice", body, this);
  return started_;
}

CUresult AdviceServer::queue(CUcontext context, CUstream stream, const std::vector<Span>& spans,
                             const AdviceList& advice) {
  if (!driver().LaunchHostFunc) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const auto job = std::make_shared<Job>(Job{this, context, stream, spans, advice});
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || !start()) {
      return CUDA_ERROR_OPERATING_SYSTEM;
    }
    outstanding_.push_back(job);
  }
  const CUresult result = driver().LaunchHostFunc(stream, &reached, job.get());
  if (result != CUDA_SUCCESS) {
    const std::lock_guard lock(mutex_);
    std::erase(outstanding_, job);
  }
  return result;
}

// On a thread of the driver's.
void CUDA_CB AdviceServer::reached(void* data) {
  Job* const reached = static_cast<Job*>(data);
  AdviceServer& server = *reached->server;
  std::unique_lock lock(server.mutex_);
  const auto found = std::find_if(server.outstanding_.begin(), server.outstanding_.end(),
                                  [&](const auto& each) { return each.get() == reached; });
  if (found == server.outstanding_.end() || server.stopped_) {
    return;
  }
  const std::shared_ptr<Job> job = std::move(*found);
  server.outstanding_.erase(found);
  try {
    server.due_.push_back(job);
  } catch (const std::bad_alloc&) {
    return;
  }
  server.changed_.notify_all();
  server.changed_.wait_for(lock, kPatience, [&] { return job->done || server.stopped_; });
}

void AdviceServer::run() noexcept {
  const Relaxed mode;
  CUcontext current = nullptr;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !due_.empty(); });
    if (stopped_) {
      return;
    }
    const std::shared_ptr<Job> job = due_.front();
    due_.pop_front();
    lock.unlock();
    give(*job, &current);
    lock.lock();
    job->done = true;
    changed_.notify_all();
  }
}

// Advice that is refused costs time, not data: what was to be a duplicate is not, or stays one.
void AdviceServer::give(const Job& job, CUcontext* current) noexcept {
  if (*current != job.context && driver().CtxSetCurrent &&
      driver().CtxSetCurrent(job.context) == CUDA_SUCCESS) {
    *current = job.context;
  }
  for (const Advice& each : job.advice) {
    for (const Span& span : job.spans) {
      advise(span, static_cast<CUmem_advise>(each.what), each.location);
    }
  }
}

void AdviceServer::wait_for(std::uint64_t address, std::uint64_t bytes) noexcept try {
  std::vector<CUstream> streams;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& job : outstanding_) {
      const bool touches = std::any_of(job->spans.begin(), job->spans.end(), [&](const Span& span) {
        return span.address < address + bytes && address < span.address + span.bytes;
      });
      if (touches && std::find(streams.begin(), streams.end(), job->stream) == streams.end()) {
        streams.push_back(job->stream);
      }
    }
  }
  const Relaxed mode;
  for (const CUstream stream : streams) {
    if (driver().StreamSynchronize) {
      driver().StreamSynchronize(stream);
    }
  }
} catch (...) {
  return;
}

void AdviceServer::forget(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(outstanding_, [context](const auto& job) { return job->context == context; });
}

void AdviceServer::stop(int timeout_ms) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      return;
    }
    stopped_ = true;
  }
  changed_.notify_all();
  if (started_) {
    join_or_leave(thread_, timeout_ms);
  }
}

}  // namespace deepum::runtime
