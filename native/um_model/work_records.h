/* What a program has a machine do, as records: the half of a trace that events
 * (native/wire/records.h) leave out. Events say which memory may be touched; work says what is
 * touched in truth, how long it takes, and what else the host asks for. Docs: docs/simulate.md.
 *
 * C, so that C++ includes it and Python reads it: plain enums and structs, fixed-width types, no
 * implicit padding.
 */
#ifndef DEEPUM_UM_MODEL_WORK_RECORDS_H
#define DEEPUM_UM_MODEL_WORK_RECORDS_H

#include <stdint.h>

enum { DEEPUM_WORK_VERSION = 1, DEEPUM_WORK_BY_ADDRESS = 0xffffffff };

enum deepum_work_kind {
  DEEPUM_WORK_LAUNCH = 1, /* a kernel, or a copy inside the device */
  /* Between host and device, either way: accesses are the managed side; bytes in device_bytes. */
  DEEPUM_WORK_COPY = 2,
  DEEPUM_WORK_HOST_COPY = 3, /* from host to host: bytes in device_bytes */
  DEEPUM_WORK_PREFETCH = 4,  /* the program's own, to `location` */
  /* The program's own; then to `location`, if DEEPUM_WORK_THEN_PREFETCH. */
  DEEPUM_WORK_DISCARD = 5,
  DEEPUM_WORK_ADVISE = 6, /* number in `event` (um_model.h, enum deepum_model_advice) */
  DEEPUM_WORK_CALL = 7,   /* a host function in the stream */
  DEEPUM_WORK_RECORD = 8,
  DEEPUM_WORK_WAIT = 9,
  DEEPUM_WORK_SYNCHRONISE_EVENT = 10,
  DEEPUM_WORK_SYNCHRONISE_STREAM = 11,
  DEEPUM_WORK_SPEND = 12, /* the host is busy for `ns` */
  /* Memory comes: one access; plain device memory unless DEEPUM_WORK_MANAGED. */
  DEEPUM_WORK_MAP = 13,
  DEEPUM_WORK_UNMAP = 14 /* and goes: the access's address */
};

enum deepum_work_flags {
  DEEPUM_WORK_MATRIX_UNITS = 1,
  DEEPUM_WORK_OF_GRAPH = 2,
  DEEPUM_WORK_UNCOUNTED = 4, /* a memset or copy: launched as a kernel is, but no kernel */
  DEEPUM_WORK_TO_DEVICE = 8,
  DEEPUM_WORK_THEN_PREFETCH = 16,
  DEEPUM_WORK_MANAGED = 32,
  /* Asked for by a thread that only moves memory, or by a library on its own account: not the
   * program's. */
  DEEPUM_WORK_OF_HELPER = 64,
  DEEPUM_WORK_ENDS_STEP = 128 /* the last launch of an iteration */
};

enum deepum_work_access_flags {
  DEEPUM_WORK_READ = 1,
  DEEPUM_WORK_WRITE = 2,
  DEEPUM_WORK_WRITTEN_FIRST = 4, /* what is read was written by the same launch, or may have been */
  DEEPUM_WORK_ESTIMATED = 8,     /* not known exactly */
  DEEPUM_WORK_PERHAPS = 16       /* perhaps written, at no cost */
};

typedef struct deepum_work_access {
  /* Of the allocation; DEEPUM_WORK_BY_ADDRESS: `offset` is an address, in a trace that of plain
   * device memory. */
  uint32_t slot;
  uint32_t flags;  /* enum deepum_work_access_flags */
  uint64_t offset; /* from the allocation's first byte, bytes */
  uint64_t bytes;
} deepum_work_access;

/* Accesses follow the body. Work is carried out in order, each after the event that it names has
 * been dealt with. */
typedef struct deepum_work {
  uint32_t words; /* length of the record, accesses included, in 8-byte words */
  uint16_t kind;  /* enum deepum_work_kind */
  uint16_t flags; /* enum deepum_work_flags */
  uint64_t sequence;
  uint32_t stream; /* any numbers: a stream's of the machine */
  uint32_t event;
  int32_t location; /* device, -1 for the CPU; of the stream or memory, or where to */
  uint32_t accesses;
  /* Kernel: time as measured, 0 if it follows from the figures below; else the host's. */
  double ns;
  double flops;         /* as Kernel in engine.hpp, as all that follows */
  double peak_fraction; /* 0 to 1 */
  uint64_t tiles;
  uint64_t device_bytes;
} deepum_work;

/* A file of work: this header, then records. */
typedef struct deepum_work_header {
  uint8_t magic[8]; /* "DEEPUMWK" */
  uint32_t version; /* DEEPUM_WORK_VERSION */
  uint32_t reserved0;
} deepum_work_header;

#endif
