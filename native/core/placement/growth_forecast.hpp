// How much content there will be, by what the history says of the iteration before: at most on the
// way to a launch, and at which launch the most. New content has no place yet, so its space is
// counted here, and made while the link is idle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "clock.hpp"
#include "memory/address_space.hpp"
#include "placement/device_memory.hpp"
#include "placement/growth_ahead.hpp"
#include "prediction/history.hpp"
#include "prediction/launch_chain.hpp"

namespace deepum::core {

class GrowthForecast final : public ContentListener {
 public:
  GrowthForecast(const deepum_growth_parameters& parameters, const Clock& now,
                 deepum_core_statistics& statistics, const Devices& devices,
                 const LaunchChain& chain, LaunchHistory& history)
      : parameters_(parameters),
        now_(now),
        statistics_(statistics),
        devices_(devices),
        chain_(chain),
        history_(history) {}

  // What happens to content.
  void filled(const UmBlock& block) {
    growing_[block.key.device].grown += block.content.fresh ? 1 : 0;
  }
  void content_died(UmBlock& block, bool died_now) override;
  void content_begins(UmBlock& block) override;
  void memory_gone(Allocation& allocation) override;
  // The launch at hand, on that device, is in the history: it gets what grew and died since the one
  // before.
  void launched(std::uint32_t device);

  // The chain lost so many launches at its front, or all.
  void passed(std::size_t launches);
  void restarted();

  // The launch at which there will be the most content, a training step's end of the forward pass:
  // what comes into being until then is needed after it, and leaves rather than what is needed
  // before. One past or at hand: none is known.
  LaunchIndex fullest() const { return fullest_; }
  // Content does not grow much until then: memory is swept over and over.
  bool sweeping() const { return sweeping_; }
  void find_fullest();  // unless it is known

  // The growth of a launch of the chain has room from now on. In order.
  void reserve(std::size_t ahead);
  std::uint64_t reserved_blocks(std::uint32_t device) const;
  // A launch of the chain is being placed: its growth counts for what is fetched ahead. Once for
  // each, in order.
  void count(std::size_t ahead);
  // Of launches of the chain that are placed: how many blocks of content there will be more, at
  // most, on the way there,
  const GrowthAhead& placed(std::uint32_t device) const { return growing_[device].placed; }
  // and how many the next launches need besides, at most.
  std::uint64_t soon(std::uint32_t device);

 private:
  struct Growing {                // on a device, in blocks
    std::int64_t grown = 0;       // with new content since the latest launch, less those that died,
    std::uint64_t died_away = 0;  // and those of them that were not here
    // Needed besides what exists now by the last launch that is reserved for, and by the one on the
    // way there that needs most.
    std::int64_t reserved = 0;
    std::int64_t most_reserved = 0;
    GrowthAhead placed;
    std::int64_t soon = 0;
    LaunchIndex soon_at = 0;  // launch at which that was found
  };
  struct Link {  // of the chain
    std::int32_t reserved = 0;
    std::int32_t growth = 0;
    std::uint32_t device = 0;
    std::uint64_t place = kNowhere;  // in the history
    bool counted = false;
  };
  bool knows_fullest() const;
  std::int64_t growth(const PredictedLaunch& launch) const;
  Link& link(std::size_t ahead);

  const deepum_growth_parameters& parameters_;
  const Clock& now_;
  deepum_core_statistics& statistics_;
  const Devices& devices_;
  const LaunchChain& chain_;
  LaunchHistory& history_;
  std::array<Growing, DEEPUM_MAX_DEVICES> growing_;
  std::deque<Link>
      links_;  // of the chain's launches, from its front; of those not looked at yet there are none
  LaunchIndex fullest_ = 0;
  bool sweeping_ = false;
  LaunchIndex found_at_ = 0;     // launch at which fullest_ was found; 0: it is not known
  std::size_t found_among_ = 0;  // launches of the chain, then
};

}  // namespace deepum::core
