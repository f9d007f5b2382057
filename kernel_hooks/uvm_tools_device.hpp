// /dev/nvidia-uvm-tools, or what the program's libcuda has in its place.
#pragma once

#include "uvm_tools_device.h"

namespace deepum::hooks {

// libcuda is loaded.
const deepum_uvm_tools_table& uvm_tools_device() noexcept;

// The first thing in a text that looks like a driver's release, "580.65.06": three digits behind a
// space or at the start, then a point. Null without one; its end is at the next character that is
// neither a digit nor a point.
const char* find_driver_release(const char* text) noexcept;

}  // namespace deepum::hooks
