/* A trace on a machine: the daemon's core, the mover's rules and the unified-memory model, in one
 * thread and virtual time. Python reads this file (cffi) after core.h, um_model.h and
 * work_records.h. Times in nanoseconds of virtual time, sizes in bytes.
 */
#ifndef DEEPUM_SIMULATE_SIMULATE_H
#define DEEPUM_SIMULATE_SIMULATE_H

#include "activity.h"
#include "core.h"
#include "um_model.h"
#include "work_records.h"

#ifdef __cplusplus
extern "C" {
#endif

enum deepum_simulation_mode {
  /* As DEEPUM_SYNC=1: a launch waits for its decisions and for the prefetches that it was held
   * for. */
  DEEPUM_SIMULATION_LOCK_STEP = 0,
  /* As DEEPUM_SYNC=0: decisions come late, and nothing waits for them. */
  DEEPUM_SIMULATION_FREE = 1
};

/* What the core is told of the GPU while it wants to be. */
enum deepum_simulation_observe {
  DEEPUM_SIMULATION_OBSERVE_NOTHING = 0,
  DEEPUM_SIMULATION_OBSERVE_FAULTS = 1, /* and times of launches */
  DEEPUM_SIMULATION_OBSERVE_TIMES = 2
};

typedef struct deepum_simulation_options {
  /* Of each device; 0: the machine's. Events that tell the capacity are told of this one. */
  uint64_t memory_bytes;
  /* Bytes: so much more than that, at the program's start, the core is told; less where it is
   * negative. */
  int64_t capacity_error;
  int32_t devices;            /* 1 to 16 */
  int32_t density_prefetcher; /* the driver's: 0 or 1 */
  int32_t mode;               /* enum deepum_simulation_mode */
  /* Running free: a launch waits for its moves in stream order: 0 or 1. */
  int32_t gates;
  double decision_lag_ns; /* running free: from an event to the daemon's commands, 0 or more */
  /* Running free: with the driver at a time, each way; at least 2 MiB. */
  uint64_t handover_bytes;
  int32_t marker_interval; /* launches of a stream between two progress markers */
  int32_t observe;         /* enum deepum_simulation_observe */
  /* 1: what is to be fetched is waited for, but not fetched: DEEPUM_PREFETCH=0. */
  int32_t without_prefetch;
  int32_t without_free_memory; /* 1: the core is not told what is free of the devices */
  int32_t keep_commands;       /* 1: deepum_simulation_take_commands gives them */
  int32_t keep_launches;       /* 1: deepum_simulation_launches tells of each */
  int32_t keep_activities;     /* 1: deepum_simulation_take_activities gives them */
} deepum_simulation_options;

enum deepum_simulation_mark_kind {
  DEEPUM_SIMULATION_STEP = 1,       /* the last launch of a step has completed: time of the GPU */
  DEEPUM_SIMULATION_SYNCHRONISE = 2 /* the program has waited: time of the host */
};

typedef struct deepum_simulation_mark {
  uint32_t kind;
  uint32_t reserved0;
  uint64_t launches; /* given by then */
  double time_ns;
  deepum_model_counters counters;
} deepum_simulation_mark;

/* One launch, memset or copy inside the device: when it could have begun but for memory, when it
 * did, when it ended. */
typedef struct deepum_simulation_launch {
  uint64_t sequence; /* of its event in the trace */
  double reached_ns; /* the launches before it on its stream were done */
  double ready_ns;   /* and the prefetches that it was held for */
  double end_ns;
  double kernel_ns; /* its own time, with all of its memory there */
} deepum_simulation_launch;

typedef struct deepum_simulation deepum_simulation;

/* NULL when options or figures are out of range, or memory ran out. */
deepum_simulation* deepum_simulation_create(const deepum_machine* machine,
                                            const deepum_simulation_options* options,
                                            const deepum_core_settings* settings);
void deepum_simulation_destroy(deepum_simulation* simulation);

/* What an earlier run has learned, before the first event: 0, or -1 when the bytes are not a
 * profile of this version. */
int deepum_simulation_load_tables(deepum_simulation* simulation, const uint8_t* bytes,
                                  size_t count);
/* Goes on with these events (native/wire/records.h) and the work that names them (work_records.h),
 * memory by slot. Events of a recorded run that tell what became of commands are left out: they are
 * found anew. Returns 0; -1 when a record is malformed or memory ran out: what came before it has
 * happened. */
int deepum_simulation_run(deepum_simulation* simulation, const uint8_t* events, size_t event_bytes,
                          const uint8_t* work, size_t work_bytes);
/* The same, up to the launch behind so many of them: how many bytes of each were done. */
int deepum_simulation_run_launches(deepum_simulation* simulation, const uint8_t* events,
                                   size_t event_bytes, const uint8_t* work, size_t work_bytes,
                                   size_t launches, size_t* events_done, size_t* work_done);
/* Its core, which lives as long as it does. */
deepum_core* deepum_simulation_core(deepum_simulation* simulation);
/* All of the program's work is done: the clock goes there. */
int deepum_simulation_finish(deepum_simulation* simulation);

/* The host's clock. */
double deepum_simulation_now(const deepum_simulation* simulation);
/* When the GPU was through with a step's last launch, steps counted from 0; NaN: it is not, yet. */
double deepum_simulation_step_end(const deepum_simulation* simulation, size_t step);
/* How many there are. */
size_t deepum_simulation_marks(const deepum_simulation* simulation, deepum_simulation_mark* marks,
                               size_t most);
/* Complete ones. */
size_t deepum_simulation_launches(const deepum_simulation* simulation,
                                  deepum_simulation_launch* launches, size_t most);
size_t deepum_simulation_take_commands(deepum_simulation* simulation, deepum_command* commands,
                                       size_t most);
/* Those that are left, tags being sequences of the trace's events; all of them are there after
 * deepum_simulation_finish. */
size_t deepum_simulation_take_activities(deepum_simulation* simulation, deepum_activity* activities,
                                         size_t most);
void deepum_simulation_counters(const deepum_simulation* simulation,
                                deepum_model_counters* counters);
void deepum_simulation_core_statistics(const deepum_simulation* simulation,
                                       deepum_core_statistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
