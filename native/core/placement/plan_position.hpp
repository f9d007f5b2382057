// Where in the iteration of a plan the program is.
//
// All places that agree with the launches since the program last deviated are candidates; it is
// known where it is once one is left. Launches that are alike, as those of layers are, are told
// apart by what came before them.
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
  PlanPosition() = default;
  explicit PlanPosition(std::span<const std::uint64_t> launches)
      : launches_(launches.begin(), launches.end()) {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      places_[launches_[i]].push_back(static_cast<std::uint32_t>(i));
    }
  }

  // A launch came. The count of candidates is the cost of the call.
  void launched(std::uint64_t hash) {
    std::size_t kept = 0;
    for (const std::uint32_t place : candidates_) {
      const std::uint32_t next = place + 1 < launches_.size() ? place + 1 : 0;
      if (launches_[next] == hash) {
        candidates_[kept++] = next;
      }
    }
    candidates_.resize(kept);
    if (kept == 0) {
      const auto found = places_.find(hash);
      candidates_ = found != places_.end() ? found->second : std::vector<std::uint32_t>{};
    }
  }
  void lose() { candidates_.clear(); }

  // The plan's launch that the latest one is; nothing: it is not known.
  std::optional<std::uint32_t> current() const {
    return candidates_.size() == 1 ? std::optional(candidates_.front()) : std::nullopt;
  }
  std::size_t candidates() const { return candidates_.size(); }

 private:
  std::vector<std::uint64_t> launches_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places_;  // looked up, never walked
  std::vector<std::uint32_t> candidates_;
};

}  // namespace deepum::core
