// One device's memory: what is believed to be there, in which order it leaves, and how much may be
// fetched ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/residency.hpp"
#include "placement/evictable_blocks.hpp"
#include "placement/eviction_policy.hpp"
#include "placement/prefetch_window.hpp"

namespace deepum::core {

struct DeviceMemory {
  DeviceMemory(std::uint32_t device, const deepum_core_settings& settings, const Clock& now,
               deepum_core_statistics& statistics, const EvictionPolicyFactory& make_order)
      : ordinal(device),
        residency(settings, now, statistics),
        order(make_order(settings, {now, residency, statistics.operations})),
        driver_order(true),
        window(settings.parameters.window),
        window_counts_expected_(settings.prediction == DEEPUM_PREDICT_TABLES &&
                                settings.eviction_order != DEEPUM_EVICT_FURTHEST_NEXT_USE),
        driver_evicts_(settings.pre_eviction == 0) {}

  // The block becomes resident, the last to be evicted.
  void add(UmBlock& block) {
    residency.arrive(block);
    order->arrived(block);
    if (driver_evicts_) {
      driver_order.add(block);
    }
  }
  // It leaves; its space is free.
  void drop(UmBlock& block) {
    order->departed(block);
    if (driver_evicts_) {
      driver_order.remove(block);
    }
    residency.depart(block);
  }
  // It is prefetched where it is: by its migration it is the last to be evicted.
  void renew(UmBlock& block) {
    order->before_renewal(block);
    driver_order.remove(block);
    residency.renew(block);
    driver_order.add(block);
    order->renewed(block);
  }
  // A block that is believed to be there was prefetched once more.
  void note_refetch(UmBlock& block) {
    if (driver_evicts_) {
      renew(block);
    }
  }
  // Whether a block that is believed to be there is to be asked for again. Where the driver evicts,
  // each is as soon as it may be.
  bool doubts(const UmBlock& block, std::uint64_t after_launches) {
    return residency.doubts(block, after_launches, driver_evicts_);
  }
  void mark_clean(UmBlock& block) {
    residency.mark_clean(block);
    if (block.residency.resident) {
      order->clean_changed(block);
    }
  }
  void mark_dirty(UmBlock& block) {
    residency.mark_dirty(block);
    if (block.residency.resident) {
      order->clean_changed(block);
    }
  }

  // Without pre-eviction the driver evicts for what is fetched, in `driver_order`.
  bool driver_evicts() const { return driver_evicts_; }
  // Blocks that the window limits: those that were fetched for launches to come; where launches are
  // only expected once they are placed, all that these expect.
  std::uint64_t ahead_blocks() const {
    return window_counts_expected_ ? order->expected_blocks() : order->prefetched_blocks();
  }
  void note_mistake() { window.note_mistake(ahead_blocks(), residency.capacity()); }

  const std::uint32_t ordinal;
  ResidencyBelief residency;
  std::unique_ptr<EvictionPolicy> order;
  EvictableBlocks driver_order;  // all resident blocks, the first to be evicted first
  PrefetchWindow window;
  std::uint64_t wanted = 0;  // blocks that the launch being placed misses here
  // Launch at which a block last left by a copy because a launch that was placed wanted space.
  LaunchIndex demanded_at = 0;

 private:
  bool window_counts_expected_;
  bool driver_evicts_;
};

// All devices that a core may hear of.
class Devices {
 public:
  Devices(const deepum_core_settings& settings, const Clock& now,
          deepum_core_statistics& statistics, const EvictionPolicyFactory& make_order) {
    devices_.reserve(DEEPUM_MAX_DEVICES);
    for (std::uint32_t ordinal = 0; ordinal < DEEPUM_MAX_DEVICES; ++ordinal) {
      devices_.push_back(
          std::make_unique<DeviceMemory>(ordinal, settings, now, statistics, make_order));
    }
  }
  DeviceMemory& operator[](std::uint32_t ordinal) { return *devices_[ordinal]; }
  const DeviceMemory& operator[](std::uint32_t ordinal) const { return *devices_[ordinal]; }
  DeviceMemory& of(const UmBlock& block) { return *devices_[block.key.device]; }
  std::span<const std::unique_ptr<DeviceMemory>> all() const { return devices_; }
  // Ordinals up to the highest one in use.
  std::span<const std::unique_ptr<DeviceMemory>> in_use() const {
    return std::span(devices_).first(in_use_);
  }
  std::uint32_t count() const { return in_use_; }
  bool under_pressure() const {  // of one at least
    return std::ranges::any_of(
        in_use(), [](const auto& device) { return device->residency.under_pressure(); });
  }
  void use(std::uint32_t ordinal) { in_use_ = std::max(in_use_, ordinal + 1); }

 private:
  std::vector<std::unique_ptr<DeviceMemory>> devices_;
  std::uint32_t in_use_ = 0;
};

}  // namespace deepum::core
