// Where in which plan the program is, from its requests.
//
// A few requests may be different, added or left out; then, and when the program has done something
// else, it is found again where its latest requests are those of one place in the plans. A place
// that is taken wrongly costs memory, nothing else: an offset is used only where its range is free.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plan.hpp"

namespace deepum::arena_allocator {

class Follower {
 public:
  struct Place {
    std::size_t plan;
    std::size_t request;
  };

  // The request's place; nothing: it is none of the plan that is followed, or none is.
  std::optional<Place> requested(std::uint64_t hash);
  // The program is behind its latest request, which is the last of the iteration as it was given,
  // and `since` requests.
  void add(Plan plan, std::size_t since);
  // No plan is followed: what comes is nothing that is known.
  bool is_lost() const { return !next_; }
  const std::vector<Plan>& plans() const { return plans_; }

 private:
  static constexpr std::size_t kContext = 8;   // requests by which a place is known
  static constexpr std::size_t kNear = 3;      // by which it is known near the one expected
  static constexpr std::size_t kAhead = 32;    // requests that are near
  static constexpr std::size_t kMostOdd = 16;  // in a row
  static constexpr std::size_t kMostPlans = 8;

  std::uint64_t hash_at(const Plan& plan, std::size_t request, std::size_t back) const;
  static std::uint64_t mixed(std::uint64_t context, std::uint64_t hash) {
    return (context ^ hash) * 0x9e3779b97f4a7c15ull + (context >> 31);
  }
  bool agrees(const Place& place, std::size_t requests) const;
  std::optional<Place> near() const;
  std::optional<Place> known() const;
  void index();
  Place behind(const Place& place) const {
    return {place.plan, (place.request + 1) % plans_[place.plan].hashes.size()};
  }

  std::vector<Plan> plans_;
  std::optional<Place> next_;
  std::size_t odd_ = 0;
  std::array<std::uint64_t, kContext> latest_{};  // a ring
  std::uint64_t count_ = 0;
  std::unordered_map<std::uint64_t, std::optional<Place>> places_;  // by context; several: nothing
};

}  // namespace deepum::arena_allocator
