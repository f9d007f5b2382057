// sim-PID.live: the counters so far, in memory that is a file, so that they outlive a process that
// ends without its exit handlers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "engine.hpp"

namespace deepum::simgpu {

struct State;

// Counters by the names that statistics have for them; times in seconds.
inline constexpr std::size_t kTimes = 3, kCounts = 24;
std::array<std::pair<const char*, double>, kTimes> times_of(const um_model::Counters& counters);
std::array<std::pair<const char*, std::uint64_t>, kCounts> counts_of(
    const um_model::Counters& counters);
// The last ones of counts_of are the host's: of all devices together only.
inline constexpr std::size_t kCountsOfDevice = kCounts - 4;

// Chooses the name of this process's statistics and makes the file, if statistics are asked for.
// Without room for it, there is none.
void begin_live_figures(const State& state);
// Brings the file up to date; with the lock held.
void update_live_figures(const State& state);
// The statistics' path without its ending, as FOLDER/sim-PID; empty if none are asked for.
const std::string& statistics_stem();
// The statistics are written: nobody needs the file any more.
void end_live_figures();

}  // namespace deepum::simgpu
