// CUPTI's own functions, behind the few that cupti_hooks.cpp interposes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_abi.h"

namespace deepum::hooks {

struct Cupti {
  int (*Subscribe)(void**, deepum_cupti_callback, void*) = nullptr;
  int (*Unsubscribe)(void*) = nullptr;
  int (*ActivityRegisterCallbacks)(deepum_cupti_buffer_requested,
                                   deepum_cupti_buffer_completed) = nullptr;
  int (*ActivityConfigureUnifiedMemoryCounter)(deepum_cupti_counter_config*,
                                               std::uint32_t) = nullptr;
  int (*ActivityEnable)(int) = nullptr;
  int (*ActivityDisable)(int) = nullptr;
  int (*ActivityFlushAll)(std::uint32_t) = nullptr;
  int (*ActivityGetNextRecord)(std::uint8_t*, std::size_t, deepum_cupti_activity**) = nullptr;
  int (*ActivityGetNumDroppedRecords)(void*, std::uint32_t, std::size_t*) = nullptr;
};

// The library that the program has loaded, else that of the CUDA installation it uses. null: there
// is none, or it lacks a function.
const Cupti* load_cupti() noexcept;
// A function of the library that comes after ours in the program's search order, or is loaded;
// null: no such library.
void* cupti_function(const char* name) noexcept;

}  // namespace deepum::hooks
