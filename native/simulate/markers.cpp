#include "markers.hpp"

#include "marker_search.hpp"
#include "progress_time.hpp"

namespace deepum::simulate {

void StreamMarkers::reserve(std::uint64_t sequence) {
  emitted_ = in_flight_ = sequence;
  if (unmarked_ == 0) {
    unmarked_ = sequence;
  }
}

bool StreamMarkers::launched(std::uint32_t interval, std::uint64_t blocks) {
  in_flight_ = 0;
  blocks_since_marker_ += blocks;
  return ++since_marker_ >= interval || blocks_since_marker_ >= mover::kMarkedBlocks;
}

void StreamMarkers::destroyed() {
  stream_.reset();
  unmarked_ = 0;
  since_marker_ = 0;
  blocks_since_marker_ = 0;
}

bool StreamMarkers::record(um_model::Engine& engine, um_model::Host host) {
  const std::uint64_t reach = in_flight_ != 0 ? in_flight_ - 1 : emitted_;
  if (!stream_ || unmarked_ == 0 || reach < unmarked_) {
    return false;
  }
  since_marker_ = 0;
  blocks_since_marker_ = 0;
  const std::uint64_t first = unmarked_;
  unmarked_ = in_flight_;
  if (kept_.size() < kKept) {
    kept_.push_back({0, 0, engine.add_event()});
  }
  Marker& marker = kept_[count_ % kKept];
  marker.sequence = reach;
  marker.first = first;
  ++count_;
  engine.record(host, marker.event, *stream_);
  return true;
}

StreamMarkers::Progress StreamMarkers::progress(um_model::Engine& engine,
                                                std::optional<um_model::Event>& first) {
  const std::uint64_t last =
      milestones_made_ == 0 ? 0 : milestones_[(milestones_made_ - 1) % kKept].sequence;
  if (stream_ && emitted_ > last) {
    if (milestones_.size() < kKept) {
      milestones_.push_back({0, 0, engine.add_event()});
    }
    if (!first) {
      first = engine.add_event();
      engine.record(um_model::kProgram, *first, *stream_);
    }
    Marker& made = milestones_[milestones_made_++ % kKept];
    made.sequence = emitted_;
    engine.record(um_model::kProgram, made.event, *stream_);
  }
  Progress made{milestones_made_ != 0, 0, emitted_};
  for (std::uint64_t i = milestones_made_; i > 0 && i + kKept > milestones_made_; --i) {
    const Marker& kept = milestones_[(i - 1) % kKept];
    if (engine.query(um_model::kProgram, kept.event)) {
      made.completed = kept.sequence;
      made.completed_at = deepum::completed_at(
          static_cast<float>((engine.event_time(kept.event) - engine.event_time(*first)) * 1e-6));
      break;
    }
    made.begun = kept.sequence;
  }
  return made;
}

StreamMarkers::Reached StreamMarkers::reached(um_model::Engine& engine) const {
  Reached made{UINT64_MAX, emitted_};
  if (emitted_ == 0) {
    return made;
  }
  for (std::uint64_t i = count_; i > 0 && i + kKept > count_; --i) {
    const Marker& kept = kept_[(i - 1) % kKept];
    if (engine.query(um_model::kProgram, kept.event)) {
      made.completed = i == count_ && unmarked_ == 0 ? UINT64_MAX : kept.sequence;
      return made;
    }
    made.begun = kept.sequence;
  }
  made.completed = 0;
  return made;
}

Cover StreamMarkers::cover(std::uint64_t sequence, Marker* marker) const {
  const bool launched_on = stream_.has_value() || in_flight_ != 0;
  const std::uint64_t unmarked = launched_on ? unmarked_ : 0;
  const auto kept = [this](std::uint64_t i) -> const Marker& { return kept_[(i - 1) % kKept]; };
  const auto there = [this](std::uint64_t i) { return i > 0 && i + kKept > count_; };
  const std::uint64_t oldest = count_ >= kKept ? count_ - kKept + 1 : 1;
  const std::uint64_t at = mover::covering_marker(oldest, count_, sequence, kept, there);
  const Marker* const found = there(at) && at <= count_ ? &kept(at) : nullptr;
  if ((found == nullptr || found->sequence < sequence) && unmarked != 0 && unmarked <= sequence) {
    return Cover::not_yet;
  }
  if (found == nullptr) {
    return Cover::nothing;
  }
  *marker = *found;
  return Cover::marker;
}

}  // namespace deepum::simulate
