// The orders by recency: oldest last use, or least recently migrated (DeepUM, section 5.1). What
// launches to come are expected to use leaves after all others, the block that is needed last
// first.
#pragma once

#include "placement/listed_policy.hpp"

namespace deepum::core {

class RecencyPolicy final : public ListedPolicy {
 public:
  // `prefetch_degree`: launches ahead of the latest that may be expected, at most.
  RecencyPolicy(bool by_migration, std::size_t prefetch_degree,
                const deepum_order_parameters& parameters, View view);

  void clean_changed(UmBlock& block) override;
  void before_renewal(UmBlock& block) override;
  void renewed(UmBlock& block) override;
  void prediction_failed() override;

 protected:
  void apply_use(UmBlock& block) override;
  Victim choose(const VictimQuery& query) override;
  bool came_before(const UmBlock& block, const UmBlock& other) const override;

 private:
  bool by_migration_;
};

}  // namespace deepum::core
