#include "replay.hpp"

#include <algorithm>
#include <limits>

namespace deepum::planning {

Replay::Replay(const Problem& problem, std::span<const std::uint8_t> plan,
               const deepum_planning_options& options)
    : problem_(problem),
      plan_(plan),
      options_(options),
      planned_(problem.occupancy(plan, kIterations)),
      items_(problem.items()),
      versions_(problem.versions()),
      free_(problem.memory()) {
  const std::int32_t launches = problem.launches();
  const auto gaps = static_cast<std::int32_t>(problem.gaps().size());
  for (std::int32_t index = 0; index < gaps; ++index) {
    const Gap& gap = problem.gap(index);
    if (plan[index] == 0) {
      continue;
    }
    Version& version = versions_[gap.version];
    if (gap.writer != kNone) {
      const std::int32_t after = gap.start - gap.writer;
      version.leaves_after =
          version.leaves_after == kNone ? after : std::min(version.leaves_after, after);
    }
    for (std::int32_t i = -1; gap.fetches && i < kIterations; ++i) {
      if (gap.end + i * launches >= 0) {
        fetches_.push_back({gap.end + i * launches, index});
      }
    }
  }
  std::ranges::sort(fetches_, [](const Fetch& a, const Fetch& b) {
    return std::pair(a.need, a.gap) < std::pair(b.need, b.gap);
  });
}

// Before launch 0 everything is where the plan has it at an iteration's end, and what leaves was
// copied.
void Replay::begin() {
  const std::int32_t launches = problem_.launches();
  const auto gaps = static_cast<std::int32_t>(problem_.gaps().size());
  for (std::int32_t index = 0; index < gaps; ++index) {
    const Gap& gap = problem_.gap(index);
    if (gap.end < launches) {
      continue;  // it does not reach into the next iteration
    }
    Item& item = items_[gap.item];
    item.gap = index;
    const bool there = plan_[index] == 0 && (gap.death == kNone || gap.death > launches);
    item.place = there ? Place::kDevice : Place::kHost;
    take(there ? problem_.bytes(gap.item) : 0);
    Version& version = versions_[gap.version];
    version.copied = version.leaves_after != kNone;
    version.written = gap.writer == kNone ? kNone : gap.writer - launches;
  }
}

void Replay::leave(Item& item, std::int32_t index) {
  item.place = Place::kHost;
  take(-problem_.bytes(index));
}

// As the plan has it, in an iteration that follows on one that the plan had, too.
void Replay::evict(Item& item, std::int32_t index) {
  leave(item, index);
  if (!left_.empty() && launch_ >= problem_.launches()) {
    left_[item.gap] = 1;
  }
}

void Replay::take(std::int64_t bytes) {
  free_ -= bytes;
  if (timeline_ != nullptr && bytes != 0) {
    timeline_->levels.push_back({now_, problem_.memory() - free_});
  }
}

// A launch first takes room for content that begins with it, then waits for what is fetched.
bool Replay::start_kernel(std::span<double> stall_ns) {
  if (running_ || launch_ == kIterations * problem_.launches()) {
    return false;
  }
  const std::span<const std::int32_t> needed = problem_.ending(in_iteration());
  const auto begins = [&](const Gap& gap) { return gap.death != kNone || !gap.fetches; };
  if (!has_room_) {
    std::int64_t room = 0;
    for (const std::int32_t index : needed) {
      const Gap& gap = problem_.gap(index);
      const bool away = items_[gap.item].place == Place::kHost;
      room += begins(gap) && away ? problem_.bytes(gap.item) : 0;
    }
    if (room > free_) {
      return false;
    }
    take(room);
    has_room_ = true;
    for (const std::int32_t index : needed) {
      const Gap& gap = problem_.gap(index);
      Item& item = items_[gap.item];
      if (item.place == Place::kLeaving || (begins(gap) && item.place == Place::kHost)) {
        item.place = Place::kDevice;
      }
    }
  }
  if (!std::ranges::all_of(needed, [&](std::int32_t index) {
        return items_[problem_.gap(index).item].place == Place::kDevice;
      })) {
    return false;
  }
  running_ = true;
  kernel_until_ = now_ + problem_.launch_ns(in_iteration());
  if (measuring() && !stall_ns.empty()) {
    stall_ns[in_iteration()] = now_ - ready_since_;
  }
  return true;
}

bool Replay::start_copy() {
  if (out_.busy() || copies_.empty()) {
    return false;
  }
  const Copy copy = copies_.top();
  if (!problem_.copies_early() && copy.leaves >= launch_) {
    return false;
  }
  copies_.pop();
  const Version& version = versions_[copy.version];
  if (version.written == copy.written && !version.copied) {
    const std::int32_t item = problem_.gap(problem_.of_version(copy.version).front()).item;
    out_ = {now_ + problem_.copy_ns(item), item, copy.version, copy.written};
    if (timeline_ != nullptr) {
      timeline_->transfers.push_back({now_, out_.until, item, 1});
    }
    result_.out_bytes += measuring() ? static_cast<double>(problem_.bytes(item)) : 0.0;
    note_copy(copy);
  }
  return true;
}

// The latest iteration in which the copy is made says when.
void Replay::note_copy(const Copy& copy) {
  const std::int32_t behind = running_ ? launch_ : launch_ - 1;
  if (copied_behind_.empty() || copy.written < 0) {
    return;
  }
  const std::int32_t from = copy.written - copy.written % problem_.launches();
  for (const std::int32_t gap : problem_.of_version(copy.version)) {
    copied_behind_[gap] = behind < copy.leaves ? behind - from : kNone;
  }
}

// The next in order of need: when its last use has ended, and there is room now and, by the plan,
// until the need.
bool Replay::start_fetch() {
  if (in_.busy() || next_fetch_ == fetches_.size()) {
    return false;
  }
  const Fetch fetch = fetches_[next_fetch_];
  const Gap& gap = problem_.gap(fetch.gap);
  Item& item = items_[gap.item];
  const bool in_gap = item.gap == fetch.gap && fetch.need - gap.end + gap.start < launch_;
  if (fetch.need < launch_ || (in_gap && item.place == Place::kDevice)) {  // it stayed
    ++next_fetch_;
    return true;
  }
  const std::int64_t bytes = problem_.bytes(gap.item);
  if (!in_gap || item.place != Place::kHost || fetch.need - launch_ > options_.reach ||
      free_ < bytes || planned_.greatest(launch_, fetch.need) + bytes > problem_.memory()) {
    return false;
  }
  ++next_fetch_;
  planned_.add(launch_, fetch.need, bytes);
  take(bytes);
  item.place = Place::kComing;
  in_ = {now_ + problem_.fetch_ns(gap.item), gap.item, -1, kNone};
  if (timeline_ != nullptr) {
    timeline_->transfers.push_back({now_, in_.until, gap.item, 0});
  }
  const std::int32_t measured = (kIterations - 1) * problem_.launches();
  if (!fetched_behind_.empty() && fetch.need >= measured) {
    fetched_behind_[fetch.gap] = (running_ ? launch_ : launch_ - 1) - measured;
  }
  result_.in_bytes += measuring() ? static_cast<double>(bytes) : 0.0;
  return true;
}

void Replay::end_transfers() {
  if (in_.busy() && in_.until <= now_) {
    items_[in_.item].place = Place::kDevice;
    in_ = {};
  }
  if (out_.busy() && out_.until <= now_) {
    Version& version = versions_[out_.version];
    if (version.written == out_.written) {
      version.copied = true;
      Item& item = items_[out_.item];
      if (item.place == Place::kLeaving && problem_.gap(item.gap).version == out_.version) {
        evict(item, out_.item);
      }
    }
    out_ = {};
  }
}

void Replay::end_kernel() {
  for (const std::int32_t index : problem_.beginning(in_iteration())) {
    const Gap& gap = problem_.gap(index);
    Item& item = items_[gap.item];
    Version& version = versions_[gap.version];
    item.gap = index;
    if (gap.writer == gap.start) {
      version.written = launch_;
      version.copied = false;
      if (version.leaves_after != kNone) {
        copies_.push({launch_ + version.leaves_after, gap.version, launch_});
      }
    }
    if (plan_[index] == 0) {
      continue;
    }
    if (gap.writer == kNone || version.copied) {
      evict(item, gap.item);
    } else {
      item.place = Place::kLeaving;
    }
  }
  running_ = has_room_ = false;
  ready_since_ = now_;
  ++launch_;
  for (const std::int32_t index : problem_.dying(in_iteration())) {
    const Gap& gap = problem_.gap(index);
    Item& item = items_[gap.item];
    if (item.gap != index) {
      continue;
    }
    if (item.place == Place::kDevice || item.place == Place::kLeaving) {
      leave(item, gap.item);
    }
    versions_[gap.version].written = kNone;  // there is nothing to copy any longer
  }
}

deepum_planning_result Replay::run(std::span<double> stall_ns, std::span<double> ends_ns,
                                   std::span<std::int32_t> fetched_behind,
                                   std::span<std::int32_t> copied_behind,
                                   std::span<std::uint8_t> left) {
  fetched_behind_ = fetched_behind;
  copied_behind_ = copied_behind;
  left_ = left;
  std::ranges::fill(fetched_behind_, kNone);
  std::ranges::fill(copied_behind_, kNone);
  std::ranges::fill(left_, std::uint8_t{0});
  const std::int32_t launches = problem_.launches(), total = kIterations * launches;
  begin();
  double began = 0;
  for (;;) {
    while (start_kernel(stall_ns) || start_copy() || start_fetch()) {
    }
    double next = std::numeric_limits<double>::infinity();
    next = running_ ? std::min(next, kernel_until_) : next;
    next = in_.busy() ? std::min(next, in_.until) : next;
    next = out_.busy() ? std::min(next, out_.until) : next;
    if (next == std::numeric_limits<double>::infinity()) {
      result_.stuck = in_iteration();
      return result_;
    }
    now_ = next;
    end_transfers();
    if (running_ && kernel_until_ <= now_) {
      const std::int32_t ended = in_iteration();
      end_kernel();
      if (launch_ > total - launches && !ends_ns.empty()) {
        ends_ns[ended] = now_ - began;
      }
      began = launch_ == total - launches ? now_ : began;
      if (launch_ == total) {
        if (timeline_ != nullptr) {
          timeline_->began = began;
          timeline_->ended = now_;
        }
        result_.ns = now_ - began;
        result_.stuck = -1;
        return result_;
      }
    }
  }
}

Timeline Replay::timeline() {
  Timeline timeline;
  timeline_ = &timeline;
  timeline.levels.push_back({0, 0});
  const deepum_planning_result result = run({}, {});
  timeline_ = nullptr;
  if (result.stuck >= 0) {
    return {};
  }
  timeline.cut_to_measured();
  return timeline;
}

void Timeline::cut_to_measured() {
  std::erase_if(transfers,
                [&](const deepum_planning_transfer& one) { return one.end_ns <= began; });
  for (deepum_planning_transfer& one : transfers) {
    one.start_ns -= began;
    one.end_ns -= began;
  }
  // The last level at each time, that at the iteration's beginning first.
  std::vector<deepum_planning_level> kept;
  for (const deepum_planning_level& one : levels) {
    const double ns = std::max(one.ns - began, 0.0);
    if (!kept.empty() && kept.back().ns >= ns) {
      kept.pop_back();
    }
    if (one.ns < ended) {
      kept.push_back({ns, one.bytes});
    }
  }
  levels = std::move(kept);
}

}  // namespace deepum::planning
