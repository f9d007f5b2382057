/* Random programs as text, one operation a line: THREAD NAME NUMBER... (docs/proof.md). This part
 * reads them, runs each on its threads and prints "INDEX HASH" for each; how an operation is
 * carried out is the backend's: on the GPU by the driver API (cuda.c), or one after the other on
 * plain arrays (model.c).
 */
#ifndef PROOF_EXECUTOR_H
#define PROOF_EXECUTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "cells.h"

/* clang-format off */
#define OPERATIONS(OP)                                                                             \
  OP(program) /* index, place of the cell in its granule, threads, contexts, 1: they end with      \
                 it */                                                                             \
  OP(seg)     /* memory, device, bytes, 1: managed; of the caching allocator */                    \
  OP(act)     /* memory, segment, offset, bytes, granules, 1: silently; a block is handed out,     \
                 and reported */                                                                   \
  OP(ina)     /* memory, 1: a graph keeps it for itself: the block is taken back, and reported */  \
  OP(mal)     /* memory, device, granules */                                                       \
  OP(man)     /* memory, device, granules: the program's own managed memory */                     \
  OP(asy)     /* memory, stream, granules: stream-ordered */                                       \
  OP(pin)     /* memory, device, granules: of the host */                                          \
  OP(hst)     /* memory, device, granules: of the host, pageable */                                \
  OP(fre)     /* memory */                                                                         \
  OP(fra)     /* memory, stream */                                                                 \
  OP(k)       /* kind, stream, d, first, count, a, first, count, b, first, count, salt, flops,     \
                 1: first as a number, 1: addresses that nobody but the kernel can read; from 2    \
                 on: they seem to be that of memory - 2 */                                         \
  OP(cp)      /* how (enum copy_how), stream, d, first, s, first, count */                         \
  OP(ms)      /* how (enum set_how), stream, d, first, count, value (32 bits; a cell is two of     \
                 them) */                                                                          \
  OP(rec)     /* event, stream */                                                                  \
  OP(wai)     /* stream, event */                                                                  \
  OP(esy)     /* event */                                                                          \
  OP(eqy)     /* event: asked until it is done */                                                  \
  OP(ssy)     /* stream */                                                                         \
  OP(csy)     /* device */                                                                         \
  OP(hw)      /* memory, first, count, salt: the CPU writes */                                     \
  OP(hf)      /* stream, memory, first, count, salt: a host function writes */                     \
  OP(hr)      /* memory, first, count: the CPU reads; what counts */                               \
  OP(pf)      /* memory, first, count, device + 1 (0: CPU), stream */                              \
  OP(adv)     /* memory, first, count, CUmem_advise, device + 1 */                                 \
  OP(gb)      /* graph, stream: capture begins */                                                  \
  OP(ge)      /* graph, stream: capture ends */                                                    \
  OP(gl)      /* graph, stream */                                                                  \
  OP(gd)      /* graph */                                                                          \
  OP(sn)      /* stream, device, enum stream_kind */                                               \
  OP(sd)      /* stream, device + 1 whose context is current then (0: the stream's) */             \
  OP(wv)      /* event, stream, number: as rec, by a value that the stream writes */               \
  OP(vw)      /* stream, event, number: as wai, for that value */                                  \
  OP(cm)      /* device: a context comes, and ends at once */                                      \
  OP(ce)      /* device: its context ends; all that it had is gone */                              \
  OP(frk)     /* enum child, microseconds: a child process that uses no CUDA */                    \
  OP(nap)     /* microseconds of the host's own time, in which the daemon decides and the mover    \
                 acts */                                                                           \
  OP(par)     /* from here to `end` the threads run at the same time */                            \
  OP(end)
/* clang-format on */

#define OP(name) OP_##name,
enum op_code { OPERATIONS(OP) OP_CODES };
#undef OP

enum copy_how { COPY_ANY, COPY_TYPED, COPY_SYNCHRONOUS, COPY_CELLS, COPY_PEER };
enum set_how { SET_D32, SET_D32_SYNCHRONOUS, SET_CELLS };
enum child { CHILD_ENDS, CHILD_EXITS, CHILD_STAYS, CHILD_REPORTS };
enum stream_kind { STREAM_BLOCKING, STREAM_NON_BLOCKING, STREAM_LEGACY, STREAM_PER_THREAD };
enum {
  MOST_ARGUMENTS = 15,
  MOST_MEMORIES = 4096,
  MOST_STREAMS = 128,
  MOST_EVENTS = 4096,
  MOST_GRAPHS = 64,
  MOST_THREADS = 4,
  MOST_DEVICES = 4, /* contexts: of GPU 0 and 1 the primary ones, then another one of each */
  GPUS = 2
};

typedef struct operation {
  uint32_t line;
  uint16_t thread;
  uint16_t code; /* enum op_code */
  uint64_t at[MOST_ARGUMENTS];
} operation;

/* The backend's. `what` names the failing call in what is printed. */
bool backend_open(const char* kernels);
bool execute(const operation* op); /* false: it said why by `failed` */
bool end_program(void);            /* what `fre` and the like left behind */
cells cells_of(uint64_t memory, uint64_t first, uint64_t count);
extern const bool backend_has_threads;

/* For the backend. */
extern operation current_program;
bool failed(const operation* op, const char* what, const char* why); /* false */

#endif
