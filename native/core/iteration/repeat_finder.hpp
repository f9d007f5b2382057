// How far back the launches are found again that the program does now.
//
// A table has where each context of launches was last. From there on the launches are compared one
// by one; a distance stands as long as no more than a few launches differ, so that an iteration is
// not left for the layers in it, which are found again at shorter distances all the while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "iteration/recent_launches.hpp"

namespace deepum::core {

class RepeatFinder {
 public:
  explicit RepeatFinder(const RecentLaunches& launches)
      : launches_(launches), last_(kFirstEntries) {}

  // Where the latest launch is is noted.
  void note() { way_back_of_latest(); }
  // Besides, it is looked for among those before.
  void launched();
  // What was found is dropped; for twice `way_back` launches a repetition that is shorter than
  // `way_back` has to go on for as long.
  void restart(std::uint64_t way_back);
  // Nothing came before.
  void forget();

  // Launches from a launch back to the same one; 0: nothing repeats.
  std::uint64_t distance() const { return distance_; }
  // The latest launches that equal those that came so many before them, but for a few,
  std::uint64_t run() const { return run_; }
  // since the last of those that differ,
  std::uint64_t exact() const { return exact_; }
  // and whether most of the run that touch memory with names touch the same. Layers run the same
  // kernels on other memory.
  bool on_same_memory() const { return 2 * same_names_ >= named_; }
  // The longest way back of late.
  std::uint64_t way_back() const { return way_back_; }

 private:
  static constexpr std::size_t kFirstEntries = 1u << 10;
  static constexpr std::uint32_t kFirstShift = 54;  // 64 less the bits of an entry's index

  std::size_t index_of(std::uint64_t context) const { return (context * kMix) >> shift_; }
  // Launches back to where the latest context was before, by what is noted, or 0; it is noted.
  std::uint64_t way_back_of_latest() {
    if (launches_.count() > last_.size() && last_.size() < RecentLaunches::kMost) [[unlikely]] {
      grow();
    }
    const auto now = static_cast<std::uint32_t>(launches_.count());
    const std::uint32_t before = std::exchange(last_[index_of(launches_.context())], now);
    return before != 0 ? now - before : 0;
  }
  void grow();
  void follow(std::uint64_t distance);
  bool is_exact(std::uint64_t period) const;
  bool tolerate();
  void note_names(const RecentLaunches::Launch& now, const RecentLaunches::Launch& before) {
    named_ += now.named != now.hash ? 1 : 0;
    same_names_ += now.named != now.hash && now.named == before.named ? 1 : 0;
  }
  void note_way_back(std::uint64_t way_back);

  static constexpr std::uint64_t kMostInARow = 2;
  static constexpr std::uint64_t kOddShare = 32;
  static constexpr std::uint64_t kMix = 0xd1342543de82ef95ull;

  const RecentLaunches& launches_;
  // By context: the lower half of the count of launches then; 0: never.
  std::vector<std::uint32_t> last_;
  std::uint32_t shift_ = kFirstShift;
  std::uint64_t distance_ = 0;
  std::uint64_t run_ = 0;
  std::uint64_t exact_ = 0;
  std::uint64_t named_ = 0;       // launches of the run that touch memory with names,
  std::uint64_t same_names_ = 0;  // and the same as those before
  std::uint64_t odd_ = 0;         // launches that differed, of the run's present period,
  std::uint64_t odd_in_row_ = 0;  // up to the latest
  std::uint64_t way_back_ = 0;
  std::uint64_t way_back_at_ = 0;  // count of launches then
};

}  // namespace deepum::core
