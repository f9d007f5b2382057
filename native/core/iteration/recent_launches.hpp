// The latest launches: hashes of kernel and arguments, and those with the names of the memory that
// they touch besides; and one over the last few, by which a place in the program is told from
// others that run the same kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace deepum::core {

class RecentLaunches {
 public:
  static constexpr std::size_t kMost = 1u << 17;  // launches kept
  static constexpr std::size_t kContext = 8;      // launches of a context

  struct Launch {
    std::uint64_t hash;
    std::uint64_t named;
  };

  RecentLaunches() : launches_(kFirst) {}

  void append(const Launch& launch) {
    const std::uint64_t leaves = size() >= kContext ? at(count_ - kContext).hash : 0;
    context_ = context_ * kFactor + launch.hash - leaves * kFactorToContext;
    if (count_ == launches_.size() && launches_.size() < kMost) {
      launches_.resize(2 * launches_.size());
    }
    launches_[count_++ & (launches_.size() - 1)] = launch;
  }
  // Launches so far; the index of the next one.
  std::uint64_t count() const { return count_; }
  // Those of them that are kept.
  std::uint64_t size() const { return count_ < launches_.size() ? count_ : launches_.size(); }
  // The launch of that index, which is kept.
  const Launch& at(std::uint64_t index) const { return launches_[index & (launches_.size() - 1)]; }
  // Over the last kContext launches.
  std::uint64_t context() const { return context_; }
  static std::uint64_t context_of(std::span<const std::uint64_t, kContext> hashes) {
    std::uint64_t context = 0;
    for (const std::uint64_t hash : hashes) {
      context = context * kFactor + hash;
    }
    return context;
  }

 private:
  static constexpr std::size_t kFirst = 1u << 10;
  static constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ull;
  static constexpr std::uint64_t kFactorToContext = [] {
    std::uint64_t power = 1;
    for (std::size_t i = 0; i < kContext; ++i) {
      power *= kFactor;
    }
    return power;
  }();

  std::vector<Launch> launches_;  // a ring once it is full
  std::uint64_t count_ = 0;
  std::uint64_t context_ = 0;
};

}  // namespace deepum::core
