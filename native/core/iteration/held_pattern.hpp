// The launches of an iteration, and where in it the program is, as long as it does the same.
//
// Up to two launches in a row, and a 32nd of the iteration, may be left out, added or different.
// What is so twice in a row is a part of the iteration from then on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace deepum::core {

class HeldPattern {
 public:
  HeldPattern() = default;
  // `next`: index of the launch that comes next.
  HeldPattern(std::vector<std::uint64_t> launches, std::size_t next)
      : launches_(std::move(launches)),
        next_(next),
        latest_(next_ == 0 ? period() - 1 : next_ - 1),
        begins_(latest_ == 0) {}

  // False: the program does something else.
  bool launched(std::uint64_t hash) {
    if (hash == launches_[next_] && pending_ == 0) {
      as_expected_ = true;
      arrive(next_);
      return true;
    }
    return realign(hash);
  }

  std::size_t period() const { return launches_.size(); }
  // Index of the latest launch; where one is odd, of the one that was expected.
  std::size_t position() const { return latest_; }
  bool begins() const { return begins_; }
  bool as_expected() const { return as_expected_; }
  // Iterations that ended.
  std::uint64_t ended() const { return ended_; }
  std::span<const std::uint64_t> launches() const { return launches_; }

 private:
  static constexpr std::size_t kMostInARow = 2;
  static constexpr std::size_t kOddShare = 32;
  static constexpr std::size_t kLeastTolerant = 8;  // launches: a shorter one has to be exact

  // At `at`, `removed` launches of the pattern did not come, and others came.
  struct Deviation {
    std::size_t at;
    std::size_t removed;
    std::size_t added;
    std::array<std::uint64_t, kMostInARow> hashes;
    bool operator==(const Deviation&) const = default;
  };

  // The latest launch is the one of that index.
  void arrive(std::size_t index) {
    begins_ = next_ == 0 || index < next_;
    if (begins_) [[unlikely]] {
      begin_iteration(index);
    }
    latest_ = index;
    next_ = index + 1;
    if (next_ == launches_.size()) [[unlikely]] {
      next_ = 0;
      ++ended_;
    }
  }
  void begin_iteration(std::size_t index);
  bool realign(std::uint64_t hash);
  bool skipped_to(std::size_t skipped, std::uint64_t hash) const;
  bool accept(std::size_t skipped);
  void adopt(const Deviation& deviation);

  std::vector<std::uint64_t> launches_;
  std::size_t next_ = 0;
  std::size_t latest_ = 0;
  bool begins_ = false;
  bool as_expected_ = true;
  std::uint64_t ended_ = 0;

  std::size_t pending_ = 0;  // odd launches up to the latest
  std::array<std::uint64_t, kMostInARow> odd_launches_{};
  std::size_t odd_ = 0;                                    // launches of this iteration
  std::vector<Deviation> deviations_, deviations_before_;  // of this iteration, of the one before
};

}  // namespace deepum::core
