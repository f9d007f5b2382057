/* What happened on a machine, and when: kernels, copies by what caused them, faults, drops. For
 * charts and traces of a run; kept only if asked for.
 *
 * C, so that C++ includes it and Python reads it: plain enums and structs, fixed-width types, no
 * implicit padding.
 */
#ifndef DEEPUM_UM_MODEL_ACTIVITY_H
#define DEEPUM_UM_MODEL_ACTIVITY_H

#include <stdint.h>

enum deepum_activity_kind {
  DEEPUM_ACTIVITY_KERNEL = 1,
  DEEPUM_ACTIVITY_FILL = 2,         /* a memset or a copy inside the device */
  DEEPUM_ACTIVITY_COPY_IN = 3,      /* the program's own, over the link */
  DEEPUM_ACTIVITY_COPY_OUT = 4,     /* likewise */
  DEEPUM_ACTIVITY_PREFETCH = 5,     /* to the device; 0 bytes where nothing was to be copied */
  DEEPUM_ACTIVITY_EVICT = 6,        /* a prefetch to the CPU */
  DEEPUM_ACTIVITY_FAULT = 7,        /* a batch: what it brought in */
  DEEPUM_ACTIVITY_DRIVER_EVICT = 8, /* the driver made room */
  DEEPUM_ACTIVITY_REMOTE_IN = 9,    /* used over the link, where it is */
  DEEPUM_ACTIVITY_REMOTE_OUT = 10,
  DEEPUM_ACTIVITY_DISCARD = 11, /* left the device without a copy, its content being dead */
  DEEPUM_ACTIVITY_RELEASE = 12, /* memory was unmapped */
  /* Of a simulation (native/simulate), not of a machine: */
  DEEPUM_ACTIVITY_HOLD = 13, /* a launch waited for its prefetches */
  /* Commands of one kind that the core gave for one event; the host's time. */
  DEEPUM_ACTIVITY_DECISION = 14
};

/* Moves of UM blocks that follow each other are one record, of 32 MiB at most. start_ns of a copy:
 * when it had the link. */
typedef struct deepum_activity {
  uint32_t kind; /* enum deepum_activity_kind */
  int32_t device;
  /* FAULT: regions that missed; moves: UM blocks; DECISION: commands; else 1. */
  uint32_t count;
  uint32_t command; /* DECISION: enum deepum_command_kind */
  uint64_t tag;     /* KERNEL, HOLD, DECISION: of the launch or event; 0: none */
  /* Over the link; DISCARD, RELEASE: given up; DECISION: of the UM blocks named; else 0. */
  uint64_t bytes;
  /* Managed memory on the device when this was over; 0 for HOLD and DECISION. */
  uint64_t resident_bytes;
  double start_ns, end_ns;
  double stall_ns; /* KERNEL: of its time, waiting for memory */
} deepum_activity;

#endif
