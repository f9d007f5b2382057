#include "fault_feed.hpp"

#include <utility>
#include <vector>

#include "state.hpp"

namespace deepum::simgpu {
namespace {

constexpr std::size_t kMostWaiting = 1u << 16;  // as many as the model keeps itself

// Under the driver's lock. A taker is one from its first call on.
struct Waiting {
  bool taking = false;
  std::vector<um_model::Fault> faults;
  uint64_t dropped = 0;
};
Waiting waiting[static_cast<std::size_t>(FaultTaker::kCount)];

}  // namespace

// The functions run without the driver's lock: they may call the driver.
int take_faults(FaultTaker taker, void (*each)(void* data, const deepum_sim_fault* fault),
                void* data, uint64_t* dropped) {
  std::vector<um_model::Fault> faults;
  {
    const Call call(Need::initialised, Role::neutral);
    if (!call) return 0;
    call.engine().catch_up(um_model::kProgram);
    Waiting& own = waiting[static_cast<std::size_t>(taker)];
    own.taking = true;
    for (const um_model::Fault& fault : call.engine().take_faults()) {
      for (Waiting& one : waiting) {
        if (!one.taking) continue;
        if (one.faults.size() < kMostWaiting) {
          one.faults.push_back(fault);
        } else {
          ++one.dropped;
        }
      }
    }
    faults = std::exchange(own.faults, {});
    if (dropped != nullptr) *dropped = call.engine().faults_dropped() + own.dropped;
  }
  for (const um_model::Fault& fault : faults) {
    if (each == nullptr) break;
    const deepum_sim_fault record{fault.address,
                                  fault.faults,
                                  fault.device,
                                  fault.write ? 1 : 0,
                                  0,
                                  static_cast<uint64_t>(fault.start),
                                  static_cast<uint64_t>(fault.end)};
    each(data, &record);
  }
  return 1;
}

}  // namespace deepum::simgpu

extern "C" int deepum_sim_take_faults(void (*each)(void* data, const deepum_sim_fault* fault),
                                      void* data, uint64_t* dropped) {
  return deepum::simgpu::take_faults(deepum::simgpu::FaultTaker::kCupti, each, data, dropped);
}
