// Settings that change while the session runs.
#include "core_session.hpp"

namespace deepum::core {

bool Core::on_setting(const deepum_setting_event& event) {
  switch (event.header.flags) {
    case DEEPUM_SETTING_BUDGET:
      set_budget(devices_[event.header.device], event.value);
      return true;
    case DEEPUM_SETTING_PREFETCH_DEGREE:
      if (event.value > kMostPrefetchDegree) {
        return false;
      }
      settings_.prefetch_degree = static_cast<std::uint32_t>(event.value);
      return true;
    case DEEPUM_SETTING_POLICY:
      return set_policy(event.value);
    default:
      return false;
  }
}

// What is there beyond a smaller budget leaves now, and not once a launch needs its space; launches
// that were placed with more room have no claim to it.
void Core::set_budget(DeviceMemory& device, std::uint64_t bytes) {
  device.residency.set_budget(bytes == 0 ? ResidencyBelief::kNoBudget : bytes / kBlockBytes);
  if (settings_.policy == DEEPUM_POLICY_CORRELATION && device.residency.known() &&
      device.residency.used() > device.residency.capacity()) {
    forget_chain();
    room_->evict_surplus(device, true);
  }
}

// Without commands the driver decides what is there, so that no belief stands when they are given
// again. The order of evictions and what else follows from the policy is made when the session
// begins: one that began on demand has not what it takes.
bool Core::set_policy(std::uint64_t policy) {
  if (policy > DEEPUM_POLICY_CORRELATION || first_policy_ != DEEPUM_POLICY_CORRELATION) {
    return false;
  }
  if (policy != settings_.policy) {
    settings_.policy = static_cast<std::uint32_t>(policy);
    forget_chain();
    for (const auto& device : devices_.in_use()) {
      device->residency.doubt_all_once();
    }
  }
  return true;
}

}  // namespace deepum::core
