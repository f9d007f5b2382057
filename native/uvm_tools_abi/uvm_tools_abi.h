/* The part of /dev/nvidia-uvm-tools that tells of the GPU's page faults: request numbers and
 * layouts, declared here since no header of NVIDIA's is installed with a driver. Read in NVIDIA's
 * open-gpu-kernel-modules, kernel-open/nvidia-uvm: uvm_tools.c, uvm_ioctl.h, uvm_types.h of
 * 515.43.04, 550.40.07, 550.67, 555.42.02, 560.28.03, 565.57.01, 570.86.15, 575.51.02 and
 * 580.65.06.
 *
 * The interface is private to NVIDIA's own tools and tells no version of itself: which layout holds
 * follows from the driver's release.
 *
 *   550.40.07            INIT_EVENT_TRACKER, records of the first layout, 64 bytes each
 *   550.67, 555.42.02    the same, which layout being asked for in a further member; 550.40.07 does
 * not look at it 560.28.03            the same request with a member before the status: not
 * declared here 565, 570, 575, 580   INIT_EVENT_TRACKER_V2, records of the second layout, 72 bytes
 * each
 *
 * Structures end in room to spare, since a driver copies back as many bytes as it declares.
 *
 * A queue is a ring in memory of the caller, which the driver keeps mapped until the descriptor is
 * closed. The driver writes the record, then `put`, and leaves records out, counting them, once
 * only one place is free (enqueue_event).
 */
#ifndef DEEPUM_UVM_TOOLS_ABI_H
#define DEEPUM_UVM_TOOLS_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Requests, as they are: without size and direction. The tables are asked of /dev/nvidia-uvm, the
 * others of /dev/nvidia-uvm-tools. */
enum {
  DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER = 56,
  DEEPUM_UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS = 58,
  DEEPUM_UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS = 59,
  DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE = 64,
  DEEPUM_UVM_TOOLS_INIT_EVENT_TRACKER_V2 = 76,
  DEEPUM_UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2 = 77
};

/* NV_STATUS */
enum {
  DEEPUM_NV_OK = 0,
  /* The descriptor holds no address space: a process has a second one that only guards its
   * memory. */
  DEEPUM_NV_ERR_ILLEGAL_ACTION = 0x16,
  DEEPUM_NV_ERR_INSUFFICIENT_PERMISSIONS = 0x1b,
  DEEPUM_NV_ERR_INVALID_ADDRESS = 0x1e,
  DEEPUM_NV_ERR_INVALID_ARGUMENT = 0x1f
};

/* UvmEventType; as a bit of `events`, 1 shifted by it */
enum { DEEPUM_UVM_EVENT_GPU_FAULT = 3, DEEPUM_UVM_EVENT_TYPES = 64 };

/* UvmEventMemoryAccessType */
enum {
  DEEPUM_UVM_ACCESS_INVALID = 0,
  DEEPUM_UVM_ACCESS_READ = 1,
  DEEPUM_UVM_ACCESS_WRITE = 2,
  DEEPUM_UVM_ACCESS_ATOMIC = 3,
  DEEPUM_UVM_ACCESS_PREFETCH = 4
};

/* UvmFaultType, UvmEventFaultClientType */
enum { DEEPUM_UVM_FAULT_INVALID_PTE = 2, DEEPUM_UVM_CLIENT_GPC = 1 };

/* UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS */
typedef struct deepum_uvm_tracker {
  uint64_t records; /* address of the ring, a page's */
  uint64_t count;   /* records that it has, a power of two */
  uint64_t control; /* address of deepum_uvm_control, a page's */
  uint8_t processor[16];
  uint32_t all_processors;
  uint32_t uvm_descriptor; /* of /dev/nvidia-uvm, in this process: whose faults */
  uint32_t status;         /* OUT */
  uint32_t requested;      /* the layout, 1 or 2; 550.67 and 555 */
  uint32_t granted;        /* OUT; 550.67 and 555 */
  uint32_t reserved[9];
} deepum_uvm_tracker;

/* UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS, and of DISABLE */
typedef struct deepum_uvm_events {
  uint64_t events;
  uint32_t status; /* OUT */
  uint32_t reserved[5];
} deepum_uvm_events;

/* UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS. `table`: address of UUIDs, 16 bytes each, by processor
 * as records of the same layout have them; the CPU's is the first, and those that are not there are
 * zeros. The first form writes 33 of them if the count given is 0, the second always 257. */
typedef struct deepum_uvm_uuids {
  uint64_t table;
  uint32_t count_or_status; /* first form: the count; second: the status, OUT */
  uint32_t status_or_none;  /* OUT; first form: the status */
  uint32_t reserved[8];
} deepum_uvm_uuids;
enum { DEEPUM_UVM_MOST_PROCESSORS = 257 };

/* UvmToolsEventControlData. A reader that has one thread sets both `get`s to what it has read. */
typedef struct deepum_uvm_control {
  uint32_t get_ahead, get_behind;
  uint32_t put_ahead, put_behind;
  uint64_t dropped[DEEPUM_UVM_EVENT_TYPES]; /* by type, since the start */
} deepum_uvm_control;

/* UvmEventGpuFaultInfo as the first layout has it, in a UvmEventEntry */
typedef struct deepum_uvm_fault_v1 {
  uint8_t type; /* UvmEventType */
  uint8_t fault_type;
  uint8_t access;
  uint8_t gpu; /* index into the table of UUIDs */
  uint16_t gpc;
  uint16_t client;
  uint64_t address;
  uint64_t time; /* CPU's, ns: the driver began to process the fault */
  uint64_t gpu_time;
  uint32_t batch;
  uint8_t client_type;
  uint8_t padding[3];
  uint64_t rest[3];
} deepum_uvm_fault_v1;

/* UvmEventGpuFaultInfo_V2, in a UvmEventEntry_V2 */
typedef struct deepum_uvm_fault_v2 {
  uint8_t type;
  uint8_t fault_type;
  uint16_t gpu;
  uint16_t gpc;
  uint16_t client;
  uint64_t address;
  uint64_t time;
  uint64_t gpu_time;
  uint32_t batch;
  uint8_t client_type;
  uint8_t access;
  uint8_t padding[2];
  uint64_t rest[4];
} deepum_uvm_fault_v2;

#ifdef __cplusplus
}

static_assert(sizeof(deepum_uvm_tracker) == 96 && offsetof(deepum_uvm_tracker, processor) == 24 &&
              offsetof(deepum_uvm_tracker, all_processors) == 40 &&
              offsetof(deepum_uvm_tracker, uvm_descriptor) == 44 &&
              offsetof(deepum_uvm_tracker, status) == 48 &&
              offsetof(deepum_uvm_tracker, requested) == 52 &&
              offsetof(deepum_uvm_tracker, granted) == 56);
static_assert(offsetof(deepum_uvm_events, status) == 8 &&
              offsetof(deepum_uvm_uuids, status_or_none) == 12);
static_assert(sizeof(deepum_uvm_control) == 528 && offsetof(deepum_uvm_control, dropped) == 16);
static_assert(sizeof(deepum_uvm_fault_v1) == 64 && offsetof(deepum_uvm_fault_v1, address) == 8 &&
              offsetof(deepum_uvm_fault_v1, client_type) == 36);
static_assert(sizeof(deepum_uvm_fault_v2) == 72 && offsetof(deepum_uvm_fault_v2, address) == 8 &&
              offsetof(deepum_uvm_fault_v2, access) == 37);
#endif

#endif
