/* How /dev/nvidia-uvm-tools is reached. A libcuda that stands on no kernel module exports such a table and answers in the device's place;
 * NVIDIA's does not, and the device is asked itself. */
#ifndef DEEPUM_UVM_TOOLS_DEVICE_H
#define DEEPUM_UVM_TOOLS_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEEPUM_UVM_TOOLS_DEVICE "deepum_uvm_tools_device"

/* Each answers with a number of at least 0, or with an errno below it. */
typedef struct deepum_uvm_tools_table {
  int (*release)(char* text, size_t bytes);           /* the driver's, "580.65.06"; at most `bytes` with the zero at its end */
  int (*open)(void);                                  /* a descriptor, to be closed by close(2) */
  int (*uvm_descriptors)(int* descriptors, int most); /* how many this process has of /dev/nvidia-uvm; the first of them */
  int (*control)(int descriptor, unsigned long request, void* argument);
  int (*deliver)(int descriptor); /* records of what happened until now are in the ring afterwards; null: they come by themselves */
} deepum_uvm_tools_table;

#ifdef __cplusplus
}
#endif

#endif
