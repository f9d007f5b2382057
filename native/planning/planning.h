/* Plans of an iteration that repeats: which content leaves the device between which of its uses.
 * A plan has a byte for each gap: 1, the item is evicted in it, 0, it stays.
 *
 * All else follows when a plan is carried out. Content that leaves is copied to the host right
 * after it was written, in the order of leaving, unless the host has it; it leaves behind its last
 * use, or when the copy is done. It is fetched in the order of need, as soon as there is room now
 * and, by the plan, at all launches up to the one that needs it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deepum_planning_machine {
  int64_t memory_bytes;
  double in_bytes_per_ns;
  double out_bytes_per_ns;
  /* 1: what will leave is copied right after it was written, and stays until then; 0: it is copied
   * when it leaves, as unified memory moves it. */
  uint8_t copies_early;
} deepum_planning_machine;

enum deepum_planning_kind {
  DEEPUM_PLANNING_USE = 0,
  DEEPUM_PLANNING_DEATH = 1 /* the program gives the content up before the launch */
};

typedef struct deepum_planning_event {
  int32_t item;
  int32_t launch;
  uint8_t kind;  /* enum deepum_planning_kind */
  uint8_t reads; /* of a use: it needs the content; otherwise it overwrites all of it */
  uint8_t writes;
} deepum_planning_event;

typedef struct deepum_planning_gap {
  int32_t item;
  int32_t start;   /* launch of the use before */
  int32_t end;     /* launch of the use behind, up to `start` and one iteration */
  int32_t death;   /* launch before which the content ends; INT32_MIN: it does not */
  int32_t writer;  /* launch that wrote it last, negative in earlier iterations; INT32_MIN: none */
  int32_t version; /* of the content */
  uint8_t fetches; /* the use behind needs the content */
} deepum_planning_gap;

/* What a plan takes, carried out: the last of three iterations. */
typedef struct deepum_planning_result {
  double ns; /* of the iteration */
  double in_bytes;
  double out_bytes;
  int32_t stuck; /* launch that could never run; -1: all did */
} deepum_planning_result;

/* How a plan is carried out. */
typedef struct deepum_planning_options {
  int32_t reach; /* launches ahead for which is fetched */
} deepum_planning_options;

/* One transfer of the measured iteration, ns from its beginning: negative for one that was under
 * way then; one that goes on behind its end ends later than that. */
typedef struct deepum_planning_transfer {
  double start_ns;
  double end_ns;
  int32_t item;
  uint8_t out; /* 1: to the host */
} deepum_planning_transfer;

/* Bytes of the device that are taken from then on: by what is there, is on its way, or has its room
 * beforehand. */
typedef struct deepum_planning_level {
  double ns;
  int64_t bytes;
} deepum_planning_level;

typedef struct deepum_planning_problem deepum_planning_problem;

/* Events of an item are in the order of launches, a death before the use at the same launch. NULL
 * where they are not, a number is out of range, or memory is short. */
deepum_planning_problem* deepum_planning_create(const deepum_planning_machine* machine,
                                                const double* launch_ns, size_t launches,
                                                const int64_t* item_bytes, size_t items,
                                                const deepum_planning_event* events, size_t count);
void deepum_planning_destroy(deepum_planning_problem* problem);
size_t deepum_planning_gap_count(const deepum_planning_problem* problem);
void deepum_planning_gaps(const deepum_planning_problem* problem, deepum_planning_gap* gaps);

/* Bytes on the device at each launch. */
void deepum_planning_occupancy(const deepum_planning_problem* problem, const uint8_t* plan,
                               int64_t* bytes);
/* `stall_ns`, `ends_ns`: by launch, the time that it waited, and its end. `fetched_behind`: by gap,
 * the launch that ran, or had run, when what the launch at the gap's end needs was fetched, of that
 * launch's iteration or negative in one before; INT32_MIN: nothing was. `copied_behind`: by gap,
 * the launch that ran, or had run, when the content was copied out ahead of its first eviction,
 * counted from the iteration of the launch that wrote it; INT32_MIN: it was not, or not ahead of
 * it. `left`: by gap, 1: the item left; 0: it was to, but its content ended, or was needed, before
 * its copy was done. Each may be NULL. */
deepum_planning_result deepum_planning_replay(const deepum_planning_problem* problem,
                                              const uint8_t* plan,
                                              const deepum_planning_options* options,
                                              double* stall_ns, double* ends_ns,
                                              int32_t* fetched_behind, int32_t* copied_behind,
                                              uint8_t* left);

/* What happens in the iteration that the replay measures: its transfers, in the order in which they
 * begin, and the levels of memory, the first at 0. Each returns how many there are, and writes at
 * most so many; none where a launch could never run. */
size_t deepum_planning_transfers(const deepum_planning_problem* problem, const uint8_t* plan,
                                 const deepum_planning_options* options,
                                 deepum_planning_transfer* transfers, size_t most);
size_t deepum_planning_levels(const deepum_planning_problem* problem, const uint8_t* plan,
                              const deepum_planning_options* options, deepum_planning_level* levels,
                              size_t most);

/* Planners write `plan`, and return 0, or -1 where a launch needs more than `memory_bytes`.
 *
 * Belady's rule: while there is too much, what is needed last leaves. `clean_bonus`: launches by
 * which what needs no copy counts as needed later. `keeps_ending` 1: what ends before its next use
 * counts as needed at its end, where it makes its room by itself; 0: as not needed any more.
 * `preset`, by gap: 1, evicted in any case; 2, only where nothing else is left; or NULL. */
int deepum_planning_belady(const deepum_planning_problem* problem, int64_t memory_bytes,
                           double clean_bonus, int keeps_ending, const uint8_t* preset,
                           uint8_t* plan);
/* Gaps leave in the order of the pressure that they take away (bytes over the limit times time) for
 * the time that their transfers take, until all fits (G10, MICRO'23). */
int deepum_planning_pressure(const deepum_planning_problem* problem, int64_t memory_bytes,
                             uint8_t* plan);
/* Evicted gaps stay where they fit, in that order. Returns how many. */
size_t deepum_planning_fill(const deepum_planning_problem* problem, const int32_t* order,
                            size_t count, int64_t memory_bytes, uint8_t* plan);
/* Local search from a plan that works, by so many tries: something that a launch waits for stays,
 * or something else leaves, and Belady's rule makes the rest fit. Deterministic by seed. Returns
 * how many tries made it better. */
size_t deepum_planning_search(const deepum_planning_problem* problem, uint8_t* plan, size_t tries,
                              uint64_t seed);

#ifdef __cplusplus
}
#endif
