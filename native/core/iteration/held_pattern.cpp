#include "iteration/held_pattern.hpp"

#include <algorithm>

#include "iteration/recent_launches.hpp"

namespace deepum::core {

// One that began further on, the last launches of the iteration before being left out, ends that.
void HeldPattern::begin_iteration(std::size_t index) {
  ended_ += index < next_ ? 1 : 0;
  odd_ = 0;
  std::swap(deviations_, deviations_before_);
  deviations_.clear();
}

bool HeldPattern::realign(std::uint64_t hash) {
  as_expected_ = false;
  begins_ = false;
  if (launches_.size() < kLeastTolerant) {
    return false;
  }
  if (skipped_to(pending_, hash)) {  // different ones in the places of as many
    return accept(pending_);
  }
  for (std::size_t skipped = 0; skipped <= kMostInARow; ++skipped) {
    if (skipped_to(skipped, hash)) {
      return accept(skipped);
    }
  }
  if (pending_ == kMostInARow) {
    return false;
  }
  odd_launches_[pending_++] = hash;
  latest_ = next_;
  return true;
}

// The launch is the one expected after so many more of the pattern.
bool HeldPattern::skipped_to(std::size_t skipped, std::uint64_t hash) const {
  return launches_[(next_ + skipped) % launches_.size()] == hash;
}

bool HeldPattern::accept(std::size_t skipped) {
  odd_ += std::max(skipped, pending_);
  if (odd_ > std::max(kMostInARow, launches_.size() / kOddShare)) {
    return false;
  }
  Deviation deviation{next_, skipped, pending_, {}};
  std::copy_n(odd_launches_.begin(), pending_, deviation.hashes.begin());
  std::size_t index = (next_ + skipped) % launches_.size();
  pending_ = 0;
  as_expected_ = true;
  if (index >= next_) {
    // The first launches of an iteration are compared with what is of the one before.
    const std::vector<Deviation>& before = next_ == 0 ? deviations_ : deviations_before_;
    if (std::ranges::find(before, deviation) != before.end() &&
        launches_.size() < RecentLaunches::kMost) {
      adopt(deviation);
      index = deviation.at + deviation.added;
    }
  }
  arrive(index);
  deviations_.push_back(deviation);
  return true;
}

void HeldPattern::adopt(const Deviation& deviation) {
  const auto at = launches_.begin() + static_cast<std::ptrdiff_t>(deviation.at);
  const auto behind = launches_.erase(at, at + static_cast<std::ptrdiff_t>(deviation.removed));
  launches_.insert(behind, deviation.hashes.begin(),
                   deviation.hashes.begin() + static_cast<std::ptrdiff_t>(deviation.added));
  for (auto* const others : {&deviations_, &deviations_before_}) {
    for (Deviation& other : *others) {
      if (other.at > deviation.at) {
        other.at += deviation.added - deviation.removed;
      }
    }
  }
}

}  // namespace deepum::core
