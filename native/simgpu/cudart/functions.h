// What one of the runtime stand-ins exports, by name: generated (generate.py), sorted, with a null
// name behind the last.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct deepum_sim_function {
  const char* name;
  const void* function;
};
extern __attribute__((visibility("default")))
const struct deepum_sim_function deepum_sim_cudart13_functions[];
extern __attribute__((visibility("default")))
const struct deepum_sim_function deepum_sim_cudart12_functions[];

#ifdef __cplusplus
}
#endif
