/* The numbers that the classes of the core were tuned with, a struct for each class or for some
 * that work together. Settings of a program do not change them. benchmarks/parameters.py sweeps
 * them over the named workloads and the held-out ones, and makes docs/research/parameters.md of
 * this file: one declaration a line, with its comment. Each is at least 1. A `share` is a divisor:
 * 8 is an eighth.
 */
#ifndef DEEPUM_CORE_PARAMETERS_H
#define DEEPUM_CORE_PARAMETERS_H

#include <stdint.h>

/* CommandStream */
typedef struct deepum_command_parameters {
  /* Of a command: 16 MiB are long enough for the link, and short enough to pipeline. */
  uint32_t most_blocks;
} deepum_command_parameters;

/* ResidencyBelief: doubt, and the capacity */
typedef struct deepum_residency_parameters {
  uint32_t doubt_share; /* part of what is fetched that is asked for again at most */
  /* and besides, so many times what is on the device, for what was learned while it filled */
  uint32_t free_doubts;
  uint32_t shaken_blocks; /* neighbours of a fault, on each side, that are doubted */
  uint32_t least_doubt;   /* launches for which what is known to be there is not doubted */
  /* Share of the capacity, allocated, from which on free memory matters. */
  uint32_t worth_reading;
  /* Blocks by which a reading of free memory may differ: chunks are whole. */
  uint32_t reading_tolerance;
  uint32_t loss_share;        /* part of the capacity that an iteration's losses take off at most */
  uint32_t least_share;       /* part of the initial capacity that losses leave */
  uint32_t least_loss_window; /* launches over which losses are counted, at least */
} deepum_residency_parameters;

/* Regularity of a tensor's uses */
typedef struct deepum_regularity_parameters {
  uint32_t burst_gap;        /* part of an iteration after which a use begins another burst */
  uint32_t period_tolerance; /* part that a burst may take, and that periods may differ by */
  /* Uses in a row at other times, after which the tensor is used otherwise. */
  uint32_t most_irregular;
} deepum_regularity_parameters;

/* LaunchChain, HistoryPredictor */
typedef struct deepum_prediction_parameters {
  uint32_t trust; /* launches placed ahead for each prediction in a row that was right */
  /* Predictions in a row that are right, by which the program is that of a profile. */
  uint32_t recognised;
  uint32_t skipped;         /* launches expected next, among which an execution is looked for, */
  uint32_t skipped_kernels; /* and those among which its kernel is */
  uint32_t known_agreement; /* from which on half of the trust remains (Recollection) */
  /* Of the latest 32 launches in the chain, those that lay elsewhere, by which it is left. */
  uint32_t astray;
  uint32_t inserted; /* launches in a row that may be new */
} deepum_prediction_parameters;

/* IterationMeter, LearningMonitor */
typedef struct deepum_iteration_parameters {
  uint32_t least_period; /* launches over which the longest way back counts, at least */
  /* Launches without a surprise, and two iterations, after which the program is learned. */
  uint32_t settled_after;
} deepum_iteration_parameters;

/* ChainPlanner */
typedef struct deepum_planner_parameters {
  uint32_t soon_after_wait; /* launches: by then the host is ahead of the GPU again */
  /* Launches: a queue below that does not let the host run ahead of the GPU. */
  uint32_t short_queue;
  /* Launches ahead of the latest that are placed into spare room, at most. */
  uint32_t spare_ahead;
  uint32_t idle_share; /* part of an iteration, and */
  /* launches, in which nothing left for want of space, after which the link has time. */
  uint32_t least_idle;
  uint32_t evicted_ahead; /* blocks evicted at a launch while the link has time */
} deepum_planner_parameters;

/* PrefetchWindow */
typedef struct deepum_window_parameters {
  /* Part of the device that is withheld from what is fetched ahead at first. */
  uint32_t initial_share;
  uint32_t narrowing;   /* blocks, by a mistake */
  uint32_t least_share; /* part of the device that may be fetched ahead after all mistakes */
} deepum_window_parameters;

/* GrowthForecast */
typedef struct deepum_growth_parameters {
  /* Part of a device by which content may grow where the same is swept over and over. */
  uint32_t sweep_share;
  /* Part of what content rises by, by which it may be less than in another iteration. */
  uint32_t lower_share;
  /* Parts of what content has risen by, of which all but one die again in an iteration. */
  uint32_t fallen;
  uint32_t soon; /* launches that are looked at for new content */
} deepum_growth_parameters;

/* PreEviction */
typedef struct deepum_eviction_parameters {
  uint32_t batch;             /* blocks evicted at once when room runs out */
  uint32_t headroom_share;    /* part of a device that is kept free, at most */
  uint32_t soon_share;        /* part of a device that is kept for content that comes soon */
  uint32_t prefetched_share;  /* part that may hold what was fetched into spare room; */
  uint32_t prefetched_little; /* where all of an iteration is at hand long before it runs */
  uint32_t spared_share;      /* part that is left to what comes into being */
} deepum_eviction_parameters;

/* ListedPolicy, NextUsePolicy, RecencyPolicy */
typedef struct deepum_order_parameters {
  uint32_t late_scan;     /* blocks looked at for one that is needed late, */
  uint32_t victim_scan;   /* for one victim, */
  uint32_t expected_scan; /* and of those that are expected */
  /* By recency: blocks brought since a last use, so that the space comes in time: 64 MiB. */
  uint32_t cool_down_blocks;
  uint32_t least_launches; /* by next use: a used block cools down for so many launches */
  uint32_t least_blocks;   /* and blocks brought, at least, */
  uint32_t many_launches;  /* and for one of these besides: launches, */
  uint32_t blocks_share;   /* or this part of the device in blocks brought */
  /* Content that ends by itself leaves as if it were needed so many times later. */
  uint32_t dying;
  /* Part of an iteration after which what left without a copy comes back in time. */
  uint32_t clean_far_share;
} deepum_order_parameters;

/* Invalidation */
typedef struct deepum_invalidation_parameters {
  uint32_t shortest_pause; /* launches without discards after one that failed, */
  uint32_t longest_pause;  /* doubled with each failure in a row up to that */
} deepum_invalidation_parameters;

/* CopyBack */
typedef struct deepum_copy_back_parameters {
  uint32_t settled_share; /* part of an iteration without a write, after which none is expected */
  /* Part of an iteration without evictions for want of space, after which copies may go. */
  uint32_t quiet_share;
  uint32_t scan; /* blocks looked at for a launch */
  /* Times the pace at which what has settled would be written back within an iteration. */
  uint32_t haste;
  /* Part of an iteration's work, before what is written back at once is used again. */
  uint32_t lasting_share;
  uint32_t most_wasted; /* write-backs that were wasted, counted up to there */
} deepum_copy_back_parameters;

/* PaceTrial, RemoteTrial */
typedef struct deepum_trial_parameters {
  uint32_t learning;     /* iterations: what leaves is learned one use further back with each */
  uint32_t settling;     /* iterations, after which nothing is as it was before */
  uint32_t measured;     /* iterations that are timed */
  uint32_t alike_share;  /* part of an iteration by which others may be longer or shorter */
  uint32_t most_changes; /* of that length, after which nothing is expected to repeat */
  uint32_t most_trials;  /* of tensors on the host */
  uint32_t better_share; /* part by which launches have to be faster with tensors on the host */
  /* Times what launches took before, after which a trial ends before its time. */
  uint32_t hopeless;
} deepum_trial_parameters;

/* HostResidents, HostGroups */
typedef struct deepum_host_parameters {
  uint32_t least_table; /* UM blocks: what is smaller is as well brought */
  /* Sparse uses in a row, with none besides: not a gather's result, which others read. */
  uint32_t proven_sparse;
  /* UM blocks of a tensor of a group: what is smaller is as well brought. */
  uint32_t least_tensor;
  uint32_t least_part;      /* share of what does not fit: a group of less is not worth a trial */
  uint32_t least_iteration; /* launches of an iteration in which groups are sought */
  uint32_t stable;          /* iterations of that length before the first trial, */
  uint32_t patience;        /* and while it is not known yet whether clean pages pay */
} deepum_host_parameters;

typedef struct deepum_core_parameters {
  deepum_command_parameters command;
  deepum_residency_parameters residency;
  deepum_regularity_parameters regularity;
  deepum_prediction_parameters prediction;
  deepum_iteration_parameters iteration;
  deepum_planner_parameters planner;
  deepum_window_parameters window;
  deepum_growth_parameters growth;
  deepum_eviction_parameters eviction;
  deepum_order_parameters order;
  deepum_invalidation_parameters invalidation;
  deepum_copy_back_parameters copy_back;
  deepum_trial_parameters trial;
  deepum_host_parameters host;
} deepum_core_parameters;

#endif
