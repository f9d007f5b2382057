// Advice in stream order, which the driver does not have: a stream of ours comes to a host
// function, which stands still until a thread of our own has given the advice (a host function may
// not call the driver itself). Only in lock-step and behind gates, where launches wait for moves:
// elsewhere the mover gives advice when its time has come, and no stream waits for a thread.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "commands.hpp"
#include "move_calls.hpp"

namespace deepum::runtime {

class AdviceServer {
 public:
  AdviceServer() = default;
  ~AdviceServer() = default;  // after stop()
  AdviceServer(const AdviceServer&) = delete;
  AdviceServer& operator=(const AdviceServer&) = delete;

  // Queues the advice for all of the spans on the stream, whose context is current.
  CUresult queue(CUcontext context, CUstream stream, const std::vector<Span>& spans,
                 const AdviceList& advice);
  // Returns when the advice that is queued for this memory has been given. Calls the driver.
  void wait_for(std::uint64_t address, std::uint64_t bytes) noexcept;
  void forget(CUcontext context) noexcept;  // it ended, with its streams
  // Streams stand still no longer, whatever is queued. Host functions may still come: this object
  // stays.
  void stop(int timeout_ms) noexcept;

 private:
  struct Job {
    AdviceServer* server;
    CUcontext context;
    CUstream stream;
    std::vector<Span> spans;
    AdviceList advice;
    bool done = false;
  };
  static void CUDA_CB reached(void* job);
  void run() noexcept;
  void give(const Job& job, CUcontext* current) noexcept;
  bool start() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> outstanding_;  // queued on streams
  std::deque<std::shared_ptr<Job>> due_;
  pthread_t thread_{};
  bool started_ = false;
  bool stopped_ = false;
};

}  // namespace deepum::runtime
