// Where in the iteration of a plan the program is.
//
// All places that agree with the launches since the program last deviated are candidates; it is
// known where it is once one is left. Launches that are alike, as those of layers are, are told
// apart by what came before them. From where it is known, a launch that the plan does not have
// there, or a few that are left out, do not lose the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace deepum::core {

class PlanPosition {
 public:
  static constexpr std::uint32_t kMostLeftOut = 8;  // launches in a row

  PlanPosition() = default;
  explicit PlanPosition(std::span<const std::uint64_t> launches)
      : launches_(launches.begin(), launches.end()) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      places_[launches_[i]].push_back(static_cast<std::uint32_t>(i));
    }
  }

  // A launch came. The count of candidates is the cost of the call.
  void launched(std::uint64_t hash) {
    left_out_ = 0;
    if (candidates_.size() == 1) {
      from_known_place(hash);
      return;
    }
    std::size_t kept = 0;
    for (const std::uint32_t place : candidates_) {
      if (launches_[behind(place, 1)] == hash) {
        candidates_[kept++] = behind(place, 1);
      }
    }
    candidates_.resize(kept);
    if (kept == 0) {
      begin_anew(hash);
    }
  }
  void lose() {
    candidates_.clear();
    odd_ = false;
    left_out_ = 0;
  }

  // The plan's launch that the latest one is; nothing: it is not known, or the plan has none there.
  std::optional<std::uint32_t> current() const {
    return candidates_.size() == 1 && !odd_ ? std::optional(candidates_.front()) : std::nullopt;
  }
  // The latest launch is none of the plan's, of which the place is known all the same.
  bool odd() const { return odd_; }
  // So many of the plan's launches before the current one did not come.
  std::uint32_t left_out() const { return left_out_; }
  std::uint32_t before(std::uint32_t place, std::uint32_t launches) const {
    const auto count = static_cast<std::uint32_t>(launches_.size());
    return (place + count - launches % count) % count;
  }
  std::size_t candidates() const { return candidates_.size(); }

 private:
  std::uint32_t behind(std::uint32_t place, std::uint32_t launches) const {
    return static_cast<std::uint32_t>((std::uint64_t{place} + launches) % launches_.size());
  }
  void from_known_place(std::uint64_t hash) {
    const std::uint32_t place = candidates_.front();
    for (std::uint32_t left_out = 0; left_out <= kMostLeftOut; ++left_out) {
      const std::uint32_t next = behind(place, left_out + 1);
      if (launches_[next] == hash) {
        candidates_.front() = next;
        left_out_ = left_out;
        odd_ = false;
        return;
      }
    }
    if (odd_) {  // the second in a row
      odd_ = false;
      begin_anew(hash);
    } else {
      odd_ = true;
    }
  }
  void begin_anew(std::uint64_t hash) {
    const auto found = places_.find(hash);
    candidates_ = found != places_.end() ? found->second : std::vector<std::uint32_t>{};
  }

  std::vector<std::uint64_t> launches_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places_;  // looked up, never walked
  std::vector<std::uint32_t> candidates_;
  std::uint32_t left_out_ = 0;
  bool odd_ = false;
};

}  // namespace deepum::core
