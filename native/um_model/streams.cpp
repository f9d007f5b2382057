#include "streams.hpp"

#include <algorithm>

namespace deepum::um_model {

void complete(Op& op, double now) { op.stream->finished(op, now); }

void StreamQueue::push(double arrival, decltype(Op::work) work) {
  latest_arrival_ = std::max(latest_arrival_, arrival);
  queue_.push_back(std::make_unique<Op>(Op{this, latest_arrival_, std::move(work)}));
  ++enqueued_;
  if (queue_.size() == 1) {
    resume(latest_arrival_);
  }
}

void StreamQueue::resume(double time) {
  ++pending_wakes_;
  timeline_.at(time, *this);
}

void StreamQueue::wake(double now, std::uint64_t) {
  --pending_wakes_;
  if (!begun_) {
    run(now);
  }
}

void StreamQueue::run(double now) {
  running_ = true;
  while (!queue_.empty()) {
    Op& op = *queue_.front();
    if (op.arrival > now) {
      resume(op.arrival);
      break;
    }
    begun_ = true;
    if (!executor_.begin(op, now)) {
      break;
    }
    finished(op, now);
  }
  running_ = false;
}

void StreamQueue::finished(Op& op, double now) {
  last_completion_ = now;
  begun_ = false;
  executor_.ended(op, now);
  queue_.pop_front();
  if (!running_) {
    run(now);
  }
}

}  // namespace deepum::um_model
