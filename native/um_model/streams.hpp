// Streams: operations one after the other, each begun no earlier than the host had queued it.
#pragma once

#include <deque>
#include <memory>

#include "timeline.hpp"
#include "work.hpp"

namespace deepum::um_model {

// Carries out what a stream has come to.
class Executor {
 public:
  // True: it is complete already; else complete(op, t) is called later.
  virtual bool begin(Op& op, double now) = 0;
  virtual void ended(Op& op, double now) = 0;

 protected:
  ~Executor() = default;
};

class StreamQueue final : public Actor {
 public:
  StreamQueue(Executor& executor, Timeline& timeline, int device)
      : executor_(executor), timeline_(timeline), device_(device) {}

  int device() const { return device_; }
  void push(double arrival, decltype(Op::work) work);
  void wake(double now, std::uint64_t token) override;
  void finished(Op& op, double now);

  std::uint64_t enqueued() const { return enqueued_; }
  std::uint64_t completed() const { return enqueued_ - queue_.size(); }
  double last_completion() const { return last_completion_; }
  // Nothing refers to it any more, not even the timeline.
  bool forgotten() const { return queue_.empty() && pending_wakes_ == 0; }
  void resume(double time);  // what it waited for has come
  void reuse(int device) { device_ = device; }

 private:
  void run(double now);

  Executor& executor_;
  Timeline& timeline_;
  int device_;
  std::deque<std::unique_ptr<Op>> queue_;
  bool begun_ = false;    // the first operation is being carried out
  bool running_ = false;  // inside run
  double latest_arrival_ = 0;
  double last_completion_ = 0;
  std::uint64_t enqueued_ = 0;
  std::uint64_t pending_wakes_ = 0;
};

}  // namespace deepum::um_model
