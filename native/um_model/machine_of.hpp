// Figures that came through the C face, as the engine takes them.
#pragma once

#include <optional>

#include "machine.hpp"
#include "um_model.h"

namespace deepum::um_model {

// Nothing for figures that no machine can have. Without names.
std::optional<Machine> machine_of(const deepum_machine& figures);

}  // namespace deepum::um_model
