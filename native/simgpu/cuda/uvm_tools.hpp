// /dev/nvidia-uvm-tools of the simulated GPU, which is reached through deepum_uvm_tools_device
// (uvm_tools_device.h).
#pragma once

#include <string_view>

namespace deepum::simgpu {

// Whether DEEPUM_SIM_UVM_TOOLS may be this.
bool usable_uvm_tools(std::string_view kind);

}  // namespace deepum::simgpu
