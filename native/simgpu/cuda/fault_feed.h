/* What the stand-in libcupti asks the simulated driver for; no function of NVIDIA's. Exported by
 * the stand-in libcuda beside the driver API. */
#ifndef DEEPUM_SIMGPU_FAULT_FEED_H
#define DEEPUM_SIMGPU_FAULT_FEED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Faults of one UM block that one batch serviced. */
typedef struct deepum_sim_fault {
  uint64_t address; /* of the block */
  uint32_t faults;
  int32_t device;
  int32_t write; /* 1: at least one of the faulting accesses writes */
  int32_t reserved0;
  uint64_t start_ns, end_ns; /* virtual time */
} deepum_sim_fault;

/* 1 when the driver is initialised in this process; then, with each function: faults since the last
 * call that happened by the program's clock, in order. NULL: they are forgotten. `dropped` (may be
 * NULL): records that there was no room for since the start. */
int deepum_sim_take_faults(void (*each)(void* data, const deepum_sim_fault* fault), void* data,
                           uint64_t* dropped);

#ifdef __cplusplus
}
#endif

#endif
