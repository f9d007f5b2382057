/* How /dev/nvidia-uvm-tools is reached. A libcuda that stands on no kernel module exports such a
 * table and answers in the device's place; NVIDIA's does not, and the device is asked itself. */
#ifndef DEEPUM_UVM_TOOLS_DEVICE_H
#define DEEPUM_UVM_TOOLS_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEEPUM_UVM_TOOLS_DEVICE "deepum_uvm_tools_device"

/* Each answers with a number of at least 0, or with an errno below it. */
typedef struct deepum_uvm_tools_table {
  /* The driver's, "580.65.06"; at most `bytes` with the zero at its end. */
  int (*release)(char* text, size_t bytes);
  int (*open)(void); /* a descriptor, to be closed by close(2) */
  /* How many this process has of /dev/nvidia-uvm; the first of them. */
  int (*uvm_descriptors)(int* descriptors, int most);
  int (*control)(int descriptor, unsigned long request, void* argument);
  /* Records of what happened until now are in the ring afterwards; null: they come by
   * themselves. */
  int (*deliver)(int descriptor);
} deepum_uvm_tools_table;

#ifdef __cplusplus
}
#endif

#endif
