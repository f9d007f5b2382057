// What the orders by recency and by next use share: blocks that no launch is known to need, those
// that launches to come are expected to use, and of both, those that the host has as well, apart.
#pragma once

#include <cstddef>

#include "placement/evictable_blocks.hpp"
#include "placement/eviction_policy.hpp"
#include "placement/expected_blocks.hpp"

namespace deepum::core {

class ListedPolicy : public EvictionPolicy {
 public:
  std::uint64_t expected_blocks() const override { return expected_.size(); }
  void launch_passed() override;
  UmBlock* first() override;
  UmBlock* needed_after(LaunchIndex launch, LaunchIndex known_until) override;
  void for_each_expected_after(LaunchIndex launch,
                               const std::function<void(UmBlock&)>& visit) override;

 protected:
  // `splits_expected`: expected blocks that the host has as well are kept apart.
  ListedPolicy(bool by_migration, bool splits_expected, const deepum_order_parameters& parameters,
               View view)
      : EvictionPolicy(view),
        parameters_(parameters),
        evictable_(by_migration),
        evictable_clean_(by_migration),
        splits_expected_(splits_expected) {}

  static bool is_evictable(const UmBlock& block) {
    return block.order.place == BlockPlace::kEvictable ||
           block.order.place == BlockPlace::kEvictableClean;
  }
  static bool is_expected(const UmBlock& block) {
    return block.order.place == BlockPlace::kExpected ||
           block.order.place == BlockPlace::kExpectedClean;
  }
  // Puts it at the end of a list; `launch` is that of its last use, or of the next one where it is
  // expected.
  void put(UmBlock& block, BlockPlace place, LaunchIndex launch);
  // The same where only the content of the host changed: what it was prefetched for stands.
  void move(UmBlock& block, BlockPlace place);
  // Of the evictable blocks that satisfy it, the one that came first, clean or not.
  template <typename Wanted>
  UmBlock* first_evictable(Wanted wanted) const;

  void apply_expectation(UmBlock& block, LaunchIndex by) override;
  void insert(UmBlock& block) override;
  void remove(UmBlock& block) final;
  void expectation_ended(UmBlock& block) override;
  // The place for a block in that one's stead, according to what the host has.
  BlockPlace refined(const UmBlock& block, BlockPlace place) const {
    const bool clean = block.residency.clean;
    return clean && place == BlockPlace::kEvictable ? BlockPlace::kEvictableClean
           : clean && place == BlockPlace::kExpected && splits_expected_
               ? BlockPlace::kExpectedClean
               : place;
  }
  // Where neither order nor prediction orders them: whether a block came before another.
  virtual bool came_before(const UmBlock& block, const UmBlock& other) const;

  const deepum_order_parameters& parameters_;
  EvictableBlocks evictable_;
  EvictableBlocks evictable_clean_;
  ExpectedBlocks expected_;
  ExpectedBlocks expected_clean_;  // by next use only
  BlockList cooling_down_;         // by next use only: the one used first leads

 private:
  bool splits_expected_;
  void append(UmBlock& block, BlockPlace place);
  void take_from_list(UmBlock& block);
};

template <typename Wanted>
UmBlock* ListedPolicy::first_evictable(Wanted wanted) const {
  UmBlock* const clean = evictable_clean_.find(parameters_.victim_scan, wanted);
  UmBlock* const dirty = evictable_.find(parameters_.victim_scan, wanted);
  if (clean == nullptr || dirty == nullptr) {
    return clean != nullptr ? clean : dirty;
  }
  return came_before(*clean, *dirty) ? clean : dirty;
}

}  // namespace deepum::core
