#include "fault_feed.h"

#include <vector>

#include "state.hpp"

using namespace deepum::simgpu;

// The functions run without the driver's lock: they may call the driver.
extern "C" int deepum_sim_take_faults(void (*each)(void* data, const deepum_sim_fault* fault), void* data, uint64_t* dropped) {
  std::vector<um_model::Engine::Fault> faults;
  {
    const Call call(Need::initialised, Role::neutral);
    if (!call) return 0;
    call.engine().catch_up(um_model::kProgram);
    faults = call.engine().take_faults();
    if (dropped != nullptr) *dropped = call.engine().faults_dropped();
  }
  for (const um_model::Engine::Fault& fault : faults) {
    if (each == nullptr) break;
    const deepum_sim_fault told{fault.address,
                                fault.faults,
                                fault.device,
                                fault.write ? 1 : 0,
                                0,
                                static_cast<uint64_t>(fault.start),
                                static_cast<uint64_t>(fault.end)};
    each(data, &told);
  }
  return 1;
}
