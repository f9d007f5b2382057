// Figures of a machine as text, for a machine that is like a preset but for what was measured.
#pragma once

#include <optional>
#include <string_view>

#include "machine.hpp"

namespace deepum::um_model {

// The preset with other figures: "h2d_gbps=11.2,launch_ns=4100", names and units as in
// deepum_machine. Nothing for a name that is unknown, for what is no number, and for figures that
// no machine can have. It keeps the preset's names.
std::optional<Machine> with_figures(const Machine& preset, std::string_view figures);

}  // namespace deepum::um_model
