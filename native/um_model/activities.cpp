#include "activities.hpp"

#include <algorithm>
#include <utility>

namespace deepum::um_model {
namespace {

constexpr std::uint64_t kMostBytes = 32ull << 20;
constexpr double kPauseNs = 10e3;  // shorter ones are not told

std::uint64_t key(std::uint32_t kind, int device) {
  return std::uint64_t{kind} << 32 | static_cast<std::uint32_t>(device);
}

}  // namespace

deepum_activity* Activities::latest(std::uint32_t kind, int device) {
  const auto found = latest_.find(key(kind, device));
  return found != latest_.end() ? &all_[found->second] : nullptr;
}

void Activities::add(const deepum_activity& activity) {
  latest_[key(activity.kind, activity.device)] = all_.size();
  all_.push_back(activity);
}

void Activities::move(const deepum_activity& activity) {
  deepum_activity* const before = latest(activity.kind, activity.device);
  if (before != nullptr && activity.start_ns <= before->end_ns + kPauseNs &&
      before->bytes + activity.bytes <= kMostBytes) {
    before->count += activity.count;
    before->bytes += activity.bytes;
    before->end_ns = std::max(before->end_ns, activity.end_ns);
    before->resident_bytes = activity.resident_bytes;
    return;
  }
  add(activity);
}

void Activities::move_behind(deepum_activity activity) {
  const deepum_activity* const before = latest(activity.kind, activity.device);
  if (before != nullptr && before->end_ns > activity.start_ns) {
    const double later = before->end_ns - activity.start_ns;
    activity.start_ns += later;
    activity.end_ns += later;
  }
  move(activity);
}

void Activities::ended(deepum_activity_kind kind, int device, double end_ns,
                       std::uint64_t resident_bytes) {
  if (deepum_activity* const activity = latest(kind, device)) {
    activity->end_ns = std::max(activity->end_ns, end_ns);
    activity->resident_bytes = resident_bytes;
  }
}

std::vector<deepum_activity> Activities::take() {
  latest_.clear();
  return std::exchange(all_, {});
}

}  // namespace deepum::um_model
