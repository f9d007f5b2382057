// How soon the mover's thread looks again where a command waits for what the driver has not done
// yet, in the runtime and in the simulation. Definitions only.
#pragma once

namespace deepum::mover {

inline constexpr long kHandoverPollNanoseconds = 500000;  // a 64 MiB hand-over takes 1 to 5 ms
// Where it waits itself for what a command follows.
inline constexpr long kEventPollNanoseconds = 100000;

}  // namespace deepum::mover
