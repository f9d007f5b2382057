/* The decision core's C face: events in, commands out. No CUDA, no threads, no clock, no I/O; deterministic.
 * Python reads this file (cffi); records.h is read before it.
 */
#ifndef DEEPUM_CORE_CORE_H
#define DEEPUM_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

enum deepum_policy {
  DEEPUM_POLICY_ON_DEMAND = 0,  /* watch and learn; no commands */
  DEEPUM_POLICY_CORRELATION = 1 /* chained prefetching with pre-eviction */
};

enum deepum_eviction_order {
  DEEPUM_EVICT_LEAST_RECENTLY_MIGRATED = 0, /* the paper's, outside the predicted window */
  DEEPUM_EVICT_OLDEST_LAST_USE = 1,
  DEEPUM_EVICT_FURTHEST_NEXT_USE = 2
};

enum deepum_prediction {
  DEEPUM_PREDICT_TABLES = 0, /* by the execution correlation table: the paper's */
  DEEPUM_PREDICT_HISTORY = 1 /* by what followed the same launches before */
};

enum deepum_advice {
  DEEPUM_ADVISE_NOTHING = 0,
  DEEPUM_ADVISE_REMOTE = 1 /* tables of which kernels read and write a few rows stay on the host */
};

typedef struct deepum_core_settings {
  uint32_t policy;                 /* enum deepum_policy */
  uint32_t eviction_order;         /* enum deepum_eviction_order */
  uint32_t prefetch_degree;        /* N: launches the chain runs ahead */
  uint32_t execution_ids;          /* most execution IDs kept */
  uint32_t execution_records;      /* records (prev3, prev2, prev1, next) kept for an execution ID */
  uint32_t block_table_rows;       /* rows of a UM block correlation table */
  uint32_t block_table_ways;       /* ways of a row */
  uint32_t block_table_successors; /* successors kept for an entry */
  uint32_t chain_steps;            /* most launches by which the chain is extended, and most that are placed, at one event */
  uint32_t headroom_blocks;        /* UM blocks kept free on a device */
  uint32_t pre_eviction;           /* 1: space is made by evictions, ahead of need; 0: the driver evicts for what is fetched */
  uint32_t confidence_launches; /* most launches for which a residency belief is certain under pressure; an iteration, if that is shorter */
  uint32_t invalidation;        /* 1: the content of dead PyTorch blocks is dropped, not copied; 0: not */
  uint32_t launch_queue;        /* launches that the driver lets the host be ahead of the GPU */
  uint32_t prediction;          /* enum deepum_prediction */
  uint32_t advice;              /* enum deepum_advice */
  uint32_t table_mebibytes;     /* most memory for learned tables; the execution IDs longest unused go first */
} deepum_core_settings;

typedef struct deepum_core_statistics {
  uint64_t events;
  uint64_t launches;
  uint64_t execution_ids;
  uint64_t predictions; /* launches for which a next one had been predicted */
  uint64_t predictions_right;
  uint64_t chain_restarts;
  uint64_t commands;
  uint64_t bytes_prefetched; /* asked for */
  uint64_t bytes_evicted;
  uint64_t bytes_invalidated;
  uint64_t reprefetches;    /* commands given to heal a doubtful belief */
  uint64_t window_mistakes; /* blocks that went out and were needed again at once, or came in for nothing: each narrows the window */
  uint64_t window_stalls;   /* the window alone exceeded memory: the chain waited */
  uint64_t allocated_bytes;
  uint64_t peak_allocated_bytes;
  uint64_t resident_bytes; /* believed */
  uint64_t peak_resident_bytes;
  uint64_t table_bytes;
  uint64_t malformed_events;
  uint64_t events_lost;
  uint64_t dead_bytes;              /* in inactive PyTorch blocks of allocations whose blocks are reported */
  uint64_t block_mismatches;        /* block reports whose totals disagree with our account */
  uint64_t holds;                   /* launches held back until their prefetches are done */
  uint64_t launches_over_capacity;  /* whose blocks alone exceed what managed memory may occupy of their device */
  uint64_t budget_overshoot_bytes;  /* most that was in use beyond a device's budget, as the driver's free memory told */
  uint64_t remote_bytes;            /* advised to stay on the host, */
  uint64_t peak_remote_bytes;       /* and the most at a time */
  uint64_t faults_observed;         /* as the program's driver told them, in FAULT events, */
  uint64_t faults_observed_writing; /* of these in events that name writes or atomics */
  uint64_t operations;              /* steps of work done (chain links, blocks looked at): a cost without a clock */
} deepum_core_statistics;

enum deepum_block_state {
  DEEPUM_BLOCK_RESIDENT = 1,  /* believed to be on a device once the commands given so far are carried out */
  DEEPUM_BLOCK_POPULATED = 2, /* has content somewhere */
  DEEPUM_BLOCK_FAULTED = 4,   /* was seen to fault since the allocation began */
  DEEPUM_BLOCK_WRITTEN = 8    /* and a write, or an atomic, was among the accesses that did */
};

typedef struct deepum_core deepum_core;

void deepum_core_default_settings(deepum_core_settings* settings);
/* NULL when out of memory or a setting is out of range. */
deepum_core* deepum_core_create(const deepum_core_settings* settings);
void deepum_core_destroy(deepum_core* core);

/* Takes `bytes` of whole event records (hostile ones are counted and skipped; a broken length ends the batch). Commands collect
 * inside the core until taken. Returns the sequence of the last record taken, 0 if none. */
uint64_t deepum_core_process(deepum_core* core, const uint8_t* events, size_t bytes);
/* Moves up to `most` commands out, in order; returns how many. */
size_t deepum_core_take_commands(deepum_core* core, deepum_command* commands, size_t most);
/* What is believed of UM block `block` of a slot: enum deepum_block_state, 0 where there is none. For tests and reports. */
uint32_t deepum_core_block_state(const deepum_core* core, uint32_t slot, uint64_t block);
/* 1 while observed faults are of use: launches are new, or come otherwise than predicted, or did so within the last two iterations, as
 * far as these are known, and 256 launches; else 0. Changes only when a launch is processed. */
int deepum_core_wants_faults(const deepum_core* core);
void deepum_core_get_statistics(const deepum_core* core, deepum_core_statistics* statistics);

/* Learned tables as bytes, versioned and checksummed. save: returns the size needed; writes only if `most` suffices.
 * load: 0, or -1 when the bytes are not a profile of this version (nothing is changed then). */
size_t deepum_core_save_tables(const deepum_core* core, uint8_t* bytes, size_t most);
int deepum_core_load_tables(deepum_core* core, const uint8_t* bytes, size_t count);

#ifdef __cplusplus
}
#endif

#endif
