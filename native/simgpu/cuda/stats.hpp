// sim-PID.json: what the simulated GPUs did, written when the process ends (docs/simulated-gpu.md).
#pragma once

#include "state.hpp"

namespace deepum::simgpu {

// Adds a point to the timeline: the program's host came out of a call that waits.
void note_blocking_call(State& state);

// Overwrites discarded memory so that a program that still reads it cannot get the old values (only
// with a host module loaded).
void poison(State& state, um_model::Range range);

}  // namespace deepum::simgpu
