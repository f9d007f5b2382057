// The faults of the model, for each of those who watch them: a fault is told to all, whoever asks
// first.
#pragma once

#include "fault_feed.h"

namespace deepum::simgpu {

enum class FaultTaker { kCupti, kUvmTools, kCount };

// As deepum_sim_take_faults.
int take_faults(FaultTaker taker, void (*each)(void* data, const deepum_sim_fault* fault),
                void* data, uint64_t* dropped);

}  // namespace deepum::simgpu
