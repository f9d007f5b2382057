#include "follower.hpp"

#include <algorithm>
#include <utility>

namespace deepum::arena_allocator {

std::optional<Follower::Place> Follower::requested(std::uint64_t hash) {
  latest_[count_++ % kContext] = hash;
  if (plans_.empty()) {
    return std::nullopt;
  }
  std::optional<Place> place;
  if (next_ && plans_[next_->plan].hashes[next_->request] == hash) {
    place = next_;
  } else if (next_) {
    place = near();
  }
  if (!place) {
    place = known();
  }
  if (place) {
    next_ = behind(*place);
    odd_ = 0;
  } else if (next_ && ++odd_ > kMostOdd) {
    next_.reset();
  }
  return place;
}

// Of the request so many before that one.
std::uint64_t Follower::hash_at(const Plan& plan, std::size_t request, std::size_t back) const {
  const std::size_t period = plan.hashes.size();
  return plan.hashes[(request + period - back % period) % period];
}

// The latest requests are those up to that place.
bool Follower::agrees(const Place& place, std::size_t requests) const {
  for (std::size_t back = 0; back < requests; ++back) {
    if (latest_[(count_ - 1 - back) % kContext] !=
        hash_at(plans_[place.plan], place.request, back)) {
      return false;
    }
  }
  return true;
}

// Requests were left out.
std::optional<Follower::Place> Follower::near() const {
  Place place = *next_;
  const std::size_t most = std::min(kAhead, plans_[place.plan].hashes.size());
  for (std::size_t i = 0; i < most; ++i) {
    if (count_ >= kContext && agrees(place, kNear)) {
      return place;
    }
    place = behind(place);
  }
  return std::nullopt;
}

std::optional<Follower::Place> Follower::known() const {
  if (count_ < kContext) {
    return std::nullopt;
  }
  std::uint64_t context = 0;
  for (std::size_t back = 0; back < kContext; ++back) {
    context = mixed(context, latest_[(count_ - 1 - back) % kContext]);
  }
  const auto found = places_.find(context);
  if (found == places_.end() || !found->second || !agrees(*found->second, kContext)) {
    return std::nullopt;
  }
  return found->second;
}

void Follower::index() {
  places_.clear();
  for (std::size_t plan = 0; plan < plans_.size(); ++plan) {
    for (std::size_t request = 0; request < plans_[plan].hashes.size(); ++request) {
      std::uint64_t context = 0;
      for (std::size_t back = 0; back < kContext; ++back) {
        context = mixed(context, hash_at(plans_[plan], request, back));
      }
      const auto [at, is_new] = places_.try_emplace(context, Place{plan, request});
      if (!is_new) {
        at->second.reset();
      }
    }
  }
}

void Follower::add(Plan plan, std::size_t since) {
  if (plans_.size() == kMostPlans) {
    plans_.erase(plans_.begin());
  }
  const std::size_t period = plan.hashes.size();
  const std::size_t at = (since + period - plan.rotated % period) % period;
  plans_.push_back(std::move(plan));
  next_.reset();
  odd_ = 0;
  index();
  const Place last{plans_.size() - 1, (at + period - 1) % period};
  if (count_ >= kContext && agrees(last, kContext)) {
    next_ = behind(last);
  }
}

}  // namespace deepum::arena_allocator
