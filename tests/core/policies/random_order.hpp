// An order of eviction in one class: any block that the placement at hand does not use leaves, at
// random. It shows what a new order takes; tests/core/policies/contract.cpp runs it.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "placement/eviction_policy.hpp"

class RandomOrder final : public deepum::core::EvictionPolicy {
 public:
  RandomOrder(std::uint32_t seed, View view) : EvictionPolicy(view), random_(seed) {}

  deepum::core::UmBlock* first() override { return blocks_.empty() ? nullptr : blocks_.front(); }

 protected:
  void insert(deepum::core::UmBlock& block) override { blocks_.push_back(&block); }
  void remove(deepum::core::UmBlock& block) override {
    std::erase(blocks_, &block);
    clear_prefetched(block);
  }
  deepum::core::Victim choose(const deepum::core::VictimQuery& query) override {
    std::vector<deepum::core::UmBlock*> free;
    std::ranges::copy_if(blocks_, std::back_inserter(free),
                         [&](const auto* block) { return free_to_leave(*block, query); });
    if (free.empty()) {
      return {};
    }
    return {free[std::uniform_int_distribution<std::size_t>(0, free.size() - 1)(random_)]};
  }

 private:
  std::mt19937 random_;
  std::vector<deepum::core::UmBlock*> blocks_;
};
