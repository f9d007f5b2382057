/* Event and command records: the one definition of what crosses between a program, the daemon and
 * the event log.
 *
 * C, so that C++ includes it and Python reads it (deepum/core/_build.py feeds it to cffi). Keep to
 * plain enums and structs: one declaration a line, no macros but the include guard, fixed-width
 * types, no implicit padding.
 *
 * An event record is a header and a body, a multiple of 8 bytes long. Events carry no addresses and
 * no clock, so that two runs of a deterministic program give identical bytes: memory is named by
 * (slot, UM block), where a slot is the index of a live allocation (lowest free one first) and UM
 * block 0 of a slot is the 2 MiB-aligned block of the address space that holds the allocation's
 * first byte.
 */
#ifndef DEEPUM_WIRE_RECORDS_H
#define DEEPUM_WIRE_RECORDS_H

#include <stdint.h>

enum {
  DEEPUM_WIRE_VERSION = 2,
  DEEPUM_UM_BLOCK_SHIFT = 21,    /* a UM block is 2 MiB, the driver's root chunk */
  DEEPUM_MAX_EVENT_WORDS = 2048, /* no record is longer (8-byte words) */
  DEEPUM_MAX_STREAMS = 64,       /* stream ids 0 .. 62; 63 stands for every further stream */
  DEEPUM_MAX_DEVICES = 16
};

enum deepum_event_kind {
  DEEPUM_EVENT_PAD = 0,               /* filler at the end of a ring; never in a log */
  DEEPUM_EVENT_DEVICE = 1,            /* a device came into use: deepum_device_event */
  DEEPUM_EVENT_ALLOCATE = 2,          /* deepum_allocate_event */
  DEEPUM_EVENT_FREE = 3,              /* deepum_free_event */
  DEEPUM_EVENT_BLOCK_ACTIVE = 4,      /* a PyTorch block was handed out: deepum_block_event */
  DEEPUM_EVENT_BLOCK_INACTIVE = 5,    /* a PyTorch block was given back: deepum_block_event */
  DEEPUM_EVENT_EXECUTE = 6,           /* kernel, graph, copy or memset: deepum_execute_event */
  DEEPUM_EVENT_SYNCHRONISE = 7,       /* the program is about to block: deepum_stream_event */
  DEEPUM_EVENT_STREAM_DESTROYED = 8,  /* the id may be reused: deepum_stream_event */
  DEEPUM_EVENT_CAPACITY = 9,          /* room for managed memory changed: deepum_device_event */
  DEEPUM_EVENT_PROGRAM_PREFETCH = 10, /* the program's own prefetch: deepum_program_event */
  DEEPUM_EVENT_PROGRAM_ADVISE = 11,   /* the program's own advice: deepum_program_event */
  DEEPUM_EVENT_FAULT = 12,            /* observed GPU faults: deepum_fault_event */
  DEEPUM_EVENT_MOVED = 13,            /* what became of a command: deepum_moved_event */
  /* Events were dropped; every live allocation and block is announced again next:
   * deepum_lost_event. */
  DEEPUM_EVENT_LOST = 14,
  /* Beyond its budget more of a device is in use than ever before: deepum_usage_event. */
  DEEPUM_EVENT_USAGE = 15,
  /* How far a stream was at a look for faults: deepum_progress_event. */
  DEEPUM_EVENT_PROGRESS = 16,
  /* What the driver says is free of a device: deepum_free_memory_event. */
  DEEPUM_EVENT_FREE_MEMORY = 17,
  /* How long a stream has stood still for moves, before the PROGRESS event of each look:
   * deepum_waited_event. */
  DEEPUM_EVENT_WAITED = 18,
  /* A setting of the session changes: deepum_setting_event. From the daemon, which puts it behind
   * the events that it has taken so far, with the sequence of the latest of them. */
  DEEPUM_EVENT_SETTING = 19
};

typedef struct deepum_event_header {
  uint16_t words;  /* length of the record, header included, in 8-byte words */
  uint8_t kind;    /* enum deepum_event_kind */
  uint8_t flags;   /* by kind */
  uint32_t device; /* CUDA ordinal */
  /* Rises by at least 1 from record to record of a session, over all threads; set by the ring. */
  uint64_t sequence;
} deepum_event_header;

typedef struct deepum_device_event {
  deepum_event_header header;
  uint64_t total_bytes; /* memory of the device */
  /* What managed memory may occupy: what was free when it came into use less the reserve, or the
   * budget, whichever is less; without plain device memory. */
  uint64_t capacity_bytes;
} deepum_device_event;

enum deepum_allocate_flags {
  /* The program asked for managed memory itself: the CPU may touch it, never discard. */
  DEEPUM_ALLOCATION_OF_PROGRAM = 1
};

typedef struct deepum_allocate_event {
  deepum_event_header header; /* flags: enum deepum_allocate_flags */
  uint32_t slot;
  uint32_t generation; /* rises each time the slot is given out; names the allocation in commands */
  /* Hash of (device, bytes, ordinal among live allocations of that size): equal in a second run. */
  uint64_t name;
  uint64_t bytes;
  uint64_t first_offset; /* of the first byte inside UM block 0, bytes; 0 when 2 MiB-aligned */
} deepum_allocate_event;

typedef struct deepum_free_event {
  deepum_event_header header;
  uint32_t slot;
  uint32_t generation;
} deepum_free_event;

typedef struct deepum_block_event {
  deepum_event_header header;
  uint32_t slot;
  uint32_t generation;
  uint64_t offset; /* from the allocation's first byte, bytes */
  uint64_t bytes;
  /* The allocator's own totals after the call, for the cross-check; without blocks in plain
   * device memory. */
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
} deepum_block_event;

enum deepum_execute_flags {
  DEEPUM_EXECUTE_COPY = 1,    /* a memcpy or memset */
  DEEPUM_EXECUTE_GRAPH = 2,   /* a graph launch */
  DEEPUM_EXECUTE_PARTIAL = 4, /* ranges did not fit, or an argument could not be read */
  /* A gather or scatter: of its large ranges it touches the few places that data tells it. */
  DEEPUM_EXECUTE_SPARSE = 8,
  /* Beside DEEPUM_EXECUTE_COPY: a memset; what is written comes from nowhere. */
  DEEPUM_EXECUTE_MEMSET = 16
};

/* ranges follow the body: first those known to be written only, then those known to be read only,
 * then the unknown. Behind them, bits of unknown ranges that are declared to be only read: those
 * stay where they are, so that a launch is the same execution whether it is declared or not. */
typedef struct deepum_execute_event {
  deepum_event_header header; /* flags: enum deepum_execute_flags */
  uint64_t execution_hash;    /* equal in a second run */
  uint32_t stream;            /* id, < DEEPUM_MAX_STREAMS */
  uint16_t write_ranges;
  uint16_t read_ranges;
  uint16_t unknown_ranges;
  uint16_t declared_words; /* 0: nothing is declared; else a bit for each unknown range, in words */
  uint32_t reserved0;
  /* deepum_block_range ranges[write_ranges + read_ranges + unknown_ranges] */
  /* uint64_t declared[declared_words]: bit i % 64 of word i / 64 is unknown range i's */
} deepum_execute_event;

/* A run of UM blocks inside one slot: slot << 44 | first block << 20 | number of blocks. */
typedef uint64_t deepum_block_range;
enum {
  DEEPUM_RANGE_SLOT_SHIFT = 44,
  DEEPUM_RANGE_FIRST_SHIFT = 20,
  DEEPUM_RANGE_SLOT_BITS = 20,
  DEEPUM_RANGE_FIRST_BITS = 24,
  DEEPUM_RANGE_COUNT_BITS = 20
};

typedef struct deepum_stream_event {
  deepum_event_header header;
  uint32_t stream; /* DEEPUM_ALL_STREAMS for a context synchronisation */
  uint32_t reserved0;
} deepum_stream_event;
enum { DEEPUM_ALL_STREAMS = 63 };

typedef struct deepum_program_event {
  deepum_event_header header;
  deepum_block_range range;
  int32_t location; /* CUDA ordinal, -1 for the CPU */
  int32_t advice;   /* CUmem_advise; 0 for a prefetch */
} deepum_program_event;

/* What the accesses were that faulted, as far as the driver told; none: it did not. */
enum deepum_fault_access { DEEPUM_FAULT_READ = 1, DEEPUM_FAULT_WRITE = 2, DEEPUM_FAULT_ATOMIC = 4 };

/* Faults of the launches since the last such records, of one device; each UM block is in at most
 * one record at a time. */
typedef struct deepum_fault_event {
  deepum_event_header header; /* flags: enum deepum_fault_access, or'ed */
  deepum_block_range range;   /* every block of it faulted */
  uint64_t faults;            /* in all of the range, as the driver counts */
} deepum_fault_event;

/* Before the FAULT events of each look, for each stream that was launched on. */
typedef struct deepum_progress_event {
  deepum_event_header header;
  uint32_t stream;
  uint32_t reserved0;
  uint64_t
      /* Sequence: all launches of the stream up to it had completed before the look: their
       * faults have been told, or are next. */
      completed;
  /* Sequence: none of the stream's launches behind it had begun after the look. */
  uint64_t begun;
  /* When those up to `completed` had: the GPU's time, microseconds from 1; 0: not known. */
  uint64_t completed_at;
} deepum_progress_event;

/* Only where times of launches are wanted, and launches wait for their moves: in lock-step, or at
 * gates. */
typedef struct deepum_waited_event {
  deepum_event_header header;
  uint32_t stream;
  uint32_t reserved0;
  /* Sequence: of the launches up to it, which had completed before the look. */
  uint64_t completed;
  /* So long the stream stood still before those launches, of all that were timed so far: the GPU's
   * time, microseconds. */
  uint64_t waited;
} deepum_waited_event;

enum deepum_moved_status {
  DEEPUM_MOVED_ISSUED = 0, /* handed to the driver */
  DEEPUM_MOVED_STALE = 1,  /* the allocation is gone */
  DEEPUM_MOVED_CANCELLED = 2,
  DEEPUM_MOVED_FAILED = 3, /* error holds the CUresult */
  /* A discard: none will be carried out in this session any more. */
  DEEPUM_MOVED_REFUSED = 4
};

typedef struct deepum_moved_event {
  deepum_event_header header;
  uint64_t command;
  uint32_t status; /* enum deepum_moved_status */
  uint32_t error;
} deepum_moved_event;

typedef struct deepum_lost_event {
  deepum_event_header header;
  uint64_t events; /* lost since the last such record */
} deepum_lost_event;

typedef struct deepum_usage_event {
  deepum_event_header header;
  /* Taken since the device came into use, as the driver's free memory tells: by whomever. */
  uint64_t used_bytes;
  uint64_t budget_bytes; /* DEEPUM_GPU_MEMORY, less than the device has */
} deepum_usage_event;

/* While the daemon wants it (deepum_ring_control.wants_free_memory). What the GPU has run since
 * tells how much of what was launched is in the memory that is not free. */
typedef struct deepum_free_memory_event {
  deepum_event_header header;
  uint64_t free_bytes;    /* as cuMemGetInfo tells */
  uint64_t reserve_bytes; /* DEEPUM_GPU_RESERVE: of these, not for managed memory */
  uint64_t completed;     /* sequence: all launches up to it had completed before */
  uint64_t begun;         /* sequence: no launch behind it had begun after */
} deepum_free_memory_event;

enum deepum_setting {
  /* Bytes that managed memory may occupy of the device, at most all that it has; 0: as told in
   * DEVICE and CAPACITY events. */
  DEEPUM_SETTING_BUDGET = 1,
  DEEPUM_SETTING_PREFETCH_DEGREE = 2, /* as deepum_core_settings.prefetch_degree */
  /* Enum deepum_policy: whether commands are given. Of a session that began with
   * DEEPUM_POLICY_CORRELATION only. */
  DEEPUM_SETTING_POLICY = 3
};

typedef struct deepum_setting_event {
  deepum_event_header header; /* flags: enum deepum_setting */
  uint64_t value;
} deepum_setting_event;

enum deepum_command_kind {
  DEEPUM_COMMAND_PREFETCH = 1, /* to the device */
  DEEPUM_COMMAND_EVICT =
      /* To the CPU; advice DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY: that first, so that what the CPU
       * has as well is not copied. */
  2,
  /* Drops the content of dead blocks, wherever it is. Proposed: the mover commits it if all of it
     is inactive PyTorch memory still. */
  DEEPUM_COMMAND_DISCARD = 3,
  DEEPUM_COMMAND_ADVISE = 4,
  /* The launch `cause`, of the one stream in stream_mask, starts when the prefetch or population
   * after_move has completed. Names no blocks. advice: enum deepum_hold_advice. Of no stream:
   * launches from `cause` on wait for no moves, until another is held.
   */
  DEEPUM_COMMAND_HOLD = 5,
  /* Copies to the CPU under READ_MOSTLY, which is set first: the device keeps what it has, until
     somebody writes. */
  DEEPUM_COMMAND_COPY_OUT = 6,
  /* To the CPU, where the same is believed to be: what is not is copied. READ_MOSTLY stays set. */
  DEEPUM_COMMAND_DROP = 7,
  /* Unsets READ_MOSTLY, and the CPU's copy goes. */
  DEEPUM_COMMAND_COLLAPSE = 8,
  /* To the device, blocks without content: there is nothing to copy. */
  DEEPUM_COMMAND_POPULATE = 9
};

enum deepum_mem_advise { /* CUmem_advise */
                         DEEPUM_MEM_ADVISE_SET_READ_MOSTLY = 1,
                         DEEPUM_MEM_ADVISE_UNSET_READ_MOSTLY = 2,
                         DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION = 3,
                         DEEPUM_MEM_ADVISE_UNSET_PREFERRED_LOCATION = 4,
                         DEEPUM_MEM_ADVISE_SET_ACCESSED_BY = 5,
                         DEEPUM_MEM_ADVISE_UNSET_ACCESSED_BY = 6
};

enum deepum_hold_advice {
  /* The move may wait for launches of other streams: left out where nothing is discarded any
   * more. */
  DEEPUM_HOLD_BEHIND_OTHERS = 1
};

enum deepum_direction {
  DEEPUM_DIRECTION_IN = 0,       /* prefetch, advise */
  DEEPUM_DIRECTION_OUT = 1,      /* evict */
  DEEPUM_DIRECTION_DISCARD = 2,  /* discard */
  DEEPUM_DIRECTION_DROP = 3,     /* drop */
  DEEPUM_DIRECTION_COPY = 4,     /* copy out */
  DEEPUM_DIRECTION_COLLAPSE = 5, /* collapse */
  DEEPUM_DIRECTION_POPULATE = 6, /* populate */
  DEEPUM_DIRECTIONS = 7
};

/* Commands of one direction and device are carried out in the order of their ids. A command starts
 * when
 *   - all work launched up to after_sequence on the streams of stream_mask has completed
 * (after_sequence 0: at once), and
 *   - the command after_move of another direction has completed (0: none).
 * A prefetch, population or collapse of 0 blocks only waits, and with it all behind
 * it in its direction. Advice takes effect at once, unless it follows a command.
 */
typedef struct deepum_command {
  uint64_t id;    /* rises within a session, over all directions, from 1 */
  uint64_t cause; /* sequence of the event that decided it */
  uint64_t after_sequence;
  uint64_t stream_mask; /* bit i: stream id i */
  uint64_t after_move;
  uint32_t slot;
  uint32_t generation;
  uint32_t first_block;
  uint32_t block_count;
  uint8_t kind; /* enum deepum_command_kind */
  /* Enum deepum_mem_advise, for ADVISE and EVICT; enum deepum_hold_advice; enum
   * deepum_discard_advice. */
  uint8_t advice;
  uint16_t device;
  int32_t location; /* of the advice: CUDA ordinal, -1 for the CPU */
} deepum_command;

/* The event log: this header, settings_bytes of JSON (the session's settings, UTF-8, padded with
 * spaces to 8 bytes), then event records. */
typedef struct deepum_log_header {
  uint8_t magic[8]; /* "DEEPUMEV" */
  uint32_t version; /* DEEPUM_WIRE_VERSION */
  uint32_t settings_bytes;
} deepum_log_header;

#endif
