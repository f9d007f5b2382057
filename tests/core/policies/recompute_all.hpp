// A rule in one class: whatever lives leaves by being dropped, and is computed again when it comes
// back, until that is refused. It shows what a new way of coming and going takes.
#pragma once

#include <set>

#include "placement/transfer_rule.hpp"

class RecomputeAll final : public deepum::core::TransferRule {
 public:
  std::optional<deepum::core::Entry> entry(const deepum::core::UmBlock& block) const override {
    return dropped_.contains(&block) ? std::optional(deepum::core::Entry::kRecompute)
                                     : std::nullopt;
  }
  std::optional<deepum::core::Exit> exit(const deepum::core::UmBlock& block) const override {
    return refused_ || block.content.dead ? std::nullopt
                                          : std::optional(deepum::core::Exit::kRecompute);
  }
  void after_exit(deepum::core::UmBlock& block, deepum::core::Exit exit) override {
    if (exit == deepum::core::Exit::kRecompute) {
      dropped_.insert(&block);
    }
  }
  void exit_refused(deepum::core::Exit exit) override {
    refused_ |= exit == deepum::core::Exit::kRecompute;
    if (refused_) {
      dropped_.clear();
    }
  }

 private:
  std::set<const deepum::core::UmBlock*> dropped_;
  bool refused_ = false;
};
