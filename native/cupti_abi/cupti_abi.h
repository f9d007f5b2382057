/* The part of CUPTI's interface that tells of page faults, declared here so that nothing needs
 * CUPTI's headers to build: the names, numbers and layouts of cupti_activity.h, cupti_callbacks.h
 * and cupti_result.h of CUDA 13.0 (CUPTI_API_VERSION 130001). tests/simgpu compares them with the
 * headers where these are installed.
 *
 * The record of CUDA 12's CUpti_ActivityUnifiedMemoryCounter2 is the same but for `processors`,
 * which only CUDA 13's CUpti_ActivityUnifiedMemoryCounter3 has at its end: a reader that stops
 * before it understands both. The next record begins where cuptiActivityGetNextRecord says.
 */
#ifndef DEEPUM_CUPTI_ABI_H
#define DEEPUM_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DEEPUM_CUPTI_API_VERSION = 130001 };

/* CUptiResult */
enum {
  DEEPUM_CUPTI_SUCCESS = 0,
  DEEPUM_CUPTI_ERROR_INVALID_PARAMETER = 1,
  DEEPUM_CUPTI_ERROR_INVALID_OPERATION = 7,
  DEEPUM_CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
  DEEPUM_CUPTI_ERROR_NOT_INITIALIZED = 15,
  DEEPUM_CUPTI_ERROR_INVALID_KIND = 21,
  DEEPUM_CUPTI_ERROR_NOT_SUPPORTED = 27,
  DEEPUM_CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED = 28,
  DEEPUM_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
  DEEPUM_CUPTI_ERROR_UNKNOWN = 999
};

/* CUpti_ActivityKind */
enum { DEEPUM_CUPTI_KIND_UNIFIED_MEMORY_COUNTER = 25 };

/* CUpti_ActivityFlag, for cuptiActivityFlushAll */
enum { DEEPUM_CUPTI_FLUSH_FORCED = 1 };

/* CUpti_ActivityUnifiedMemoryCounterScope */
enum { DEEPUM_CUPTI_SCOPE_PROCESS_SINGLE_DEVICE = 1, DEEPUM_CUPTI_SCOPE_PROCESS_ALL_DEVICES = 2 };

/* CUpti_ActivityUnifiedMemoryCounterKind; the kinds are 1 to 8 */
enum { DEEPUM_CUPTI_COUNTER_GPU_PAGE_FAULT = 4, DEEPUM_CUPTI_COUNTER_LAST = 8 };

/* CUpti_ActivityUnifiedMemoryAccessType: what caused a fault */
enum {
  DEEPUM_CUPTI_ACCESS_UNKNOWN = 0,
  DEEPUM_CUPTI_ACCESS_READ = 1,
  DEEPUM_CUPTI_ACCESS_WRITE = 2,
  DEEPUM_CUPTI_ACCESS_ATOMIC = 3,
  DEEPUM_CUPTI_ACCESS_PREFETCH = 4
};

/* CUpti_ActivityUnifiedMemoryCounterConfig */
typedef struct deepum_cupti_counter_config {
  int32_t scope;
  int32_t kind;
  uint32_t device; /* for the scope of a single device */
  uint32_t enable;
} deepum_cupti_counter_config;

/* CUpti_Activity: what every record begins with */
typedef struct deepum_cupti_activity {
  int32_t kind;
} deepum_cupti_activity;

/* CUpti_ActivityUnifiedMemoryCounter3 */
typedef struct deepum_cupti_counter {
  int32_t kind;
  int32_t counter_kind;
  uint64_t value; /* GPU_PAGE_FAULT: page fault groups for the same page */
  uint64_t start; /* GPU_PAGE_FAULT: the driver began to process the fault, ns */
  uint64_t end;   /* GPU_PAGE_FAULT: it queued the replay, ns */
  uint64_t address;
  uint32_t source; /* GPU_PAGE_FAULT: the device that faulted */
  uint32_t destination;
  uint32_t stream;
  uint32_t process;
  uint32_t flags; /* GPU_PAGE_FAULT: the access type */
  uint32_t padding;
  uint64_t processors[5]; /* CUDA 13 only */
} deepum_cupti_counter;

typedef void (*deepum_cupti_buffer_requested)(uint8_t** buffer, size_t* bytes,
                                              size_t* most_records);
typedef void (*deepum_cupti_buffer_completed)(void* context, uint32_t stream, uint8_t* buffer,
                                              size_t bytes, size_t valid_bytes);
typedef void (*deepum_cupti_callback)(void* data, int32_t domain, uint32_t id,
                                      const void* parameters);

#ifdef __cplusplus
}

static_assert(sizeof(deepum_cupti_counter_config) == 16);
static_assert(
    offsetof(deepum_cupti_counter, value) == 8 && offsetof(deepum_cupti_counter, start) == 16 &&
    offsetof(deepum_cupti_counter, end) == 24 && offsetof(deepum_cupti_counter, address) == 32 &&
    offsetof(deepum_cupti_counter, source) == 40 && offsetof(deepum_cupti_counter, process) == 52 &&
    offsetof(deepum_cupti_counter, flags) == 56 &&
    offsetof(deepum_cupti_counter, processors) == 64 && sizeof(deepum_cupti_counter) == 104);
#endif

#endif
