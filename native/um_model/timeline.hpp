// Virtual time: what happens next, in order of time and, at one time, in the order in which it was
// scheduled.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace deepum::um_model {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

class Actor {
 public:
  virtual void wake(double now, std::uint64_t token) = 0;

 protected:
  ~Actor() = default;
};

class Timeline {
 public:
  double now() const { return now_; }
  // Time of the next thing scheduled, and the latest time to which work may be processed at
  // present. An actor may run ahead of the queue up to the earlier of the two, since nothing else
  // happens before.
  double next() const { return queue_.empty() ? kForever : queue_.top().time; }
  double limit() const { return next() < horizon_ ? next() : horizon_; }

  void at(double time, Actor& actor, std::uint64_t token = 0) {
    queue_.push({time > now_ ? time : now_, ++scheduled_, &actor, token});
  }
  void advance_to(double time) { now_ = time > now_ ? time : now_; }

  // Carries out the next thing if it is due by `horizon`; false if there is none.
  bool step(double horizon) {
    horizon_ = horizon;
    if (next() > horizon || queue_.empty()) {
      return false;
    }
    const Entry entry = queue_.top();
    queue_.pop();
    advance_to(entry.time);
    entry.actor->wake(now_, entry.token);
    return true;
  }

 private:
  struct Entry {
    double time;
    std::uint64_t order;
    Actor* actor;
    std::uint64_t token;
    bool operator<(const Entry& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  std::priority_queue<Entry> queue_;
  std::uint64_t scheduled_ = 0;
  double now_ = 0;
  double horizon_ = 0;
};

}  // namespace deepum::um_model
