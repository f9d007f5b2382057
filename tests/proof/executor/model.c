/* What programs mean: one operation after the other on plain arrays, one cell a granule. No GPU, no
 * order, no loss. Memory that is handed out holds other garbage than the GPU's would: a program
 * that reads what it has not written gives itself away.
 */
#include <stdlib.h>

#include "executor.h"

const bool backend_has_threads = false;

typedef struct graph {
  operation* operations;
  size_t count;
} graph;
static struct {
  uint64_t* cells;
  uint64_t count;
} memories[MOST_MEMORIES];
static graph graphs[MOST_GRAPHS];
static graph* capturing;

bool backend_open(const char* kernels) { return kernels != NULL; }

cells cells_of(uint64_t memory, uint64_t first, uint64_t count) {
  /* The generator is wrong. */
  if (memory >= MOST_MEMORIES || first + count > memories[memory].count) abort();
  return (cells){(char*)(memories[memory].cells + first), sizeof(uint64_t), count};
}

static bool make(uint64_t memory, uint64_t granules) {
  if (memory >= MOST_MEMORIES || memories[memory].cells != NULL) abort();
  memories[memory].cells = malloc((granules + 1) * sizeof(uint64_t));
  memories[memory].count = granules;
  for (uint64_t i = 0; i < granules; ++i) memories[memory].cells[i] = 0xa5a5000000000000ull + i;
  return true;
}

static bool drop(uint64_t memory) {
  if (memories[memory].cells == NULL) abort();
  free(memories[memory].cells);
  memories[memory].cells = NULL;
  memories[memory].count = 0;
  return true;
}

static bool run_kernel(const operation* op) {
  const uint64_t* const a = op->at;
  const cells none = {NULL, 0, 0};
  compute((enum kernel_kind)a[0], cells_of(a[2], a[3], a[4]),
          a[7] ? cells_of(a[5], a[6], a[7]) : none, a[10] ? cells_of(a[8], a[9], a[10]) : none,
          a[11]);
  return true;
}

static bool copy(const operation* op) {
  const cells to = cells_of(op->at[2], op->at[3], op->at[6]),
              from = cells_of(op->at[4], op->at[5], op->at[6]);
  for (uint64_t i = 0; i < to.count; ++i) *cell(&to, i) = *cell(&from, i);
  return true;
}

static bool set(const operation* op) {
  const cells to = cells_of(op->at[2], op->at[3], op->at[4]);
  for (uint64_t i = 0; i < to.count; ++i) *cell(&to, i) = op->at[5] << 32 | op->at[5];
  return true;
}

static bool carry_out(const operation* op) {
  switch (op->code) {
    case OP_k:
      return run_kernel(op);
    case OP_cp:
      return copy(op);
    case OP_ms:
      return set(op);
    case OP_hf: {
      const cells none = {NULL, 0, 0};
      compute(KERNEL_FILL, cells_of(op->at[1], op->at[2], op->at[3]), none, none, op->at[4]);
      return true;
    }
    default:
      return true;
  }
}

bool execute(const operation* op) {
  switch (op->code) {
    case OP_act:
      return make(op->at[0], op->at[4]);
    case OP_mal:
    case OP_man:
    case OP_asy:
    case OP_pin:
    case OP_hst:
      return make(op->at[0], op->at[2]);
    case OP_ina:
      return op->at[1] == 1 || drop(op->at[0]);
    case OP_fra:
      return drop(op->at[0]);
    case OP_fre:
      return memories[op->at[0]].cells == NULL || drop(op->at[0]); /* a segment has none */
    case OP_hw: {
      const cells none = {NULL, 0, 0};
      compute(KERNEL_FILL, cells_of(op->at[0], op->at[1], op->at[2]), none, none, op->at[3]);
      return true;
    }
    case OP_gb:
      capturing = &graphs[op->at[0]];
      capturing->count = 0;
      return true;
    case OP_ge:
      capturing = NULL;
      return true;
    case OP_gl:
      for (size_t i = 0; i < graphs[op->at[0]].count; ++i)
        carry_out(&graphs[op->at[0]].operations[i]);
      return true;
    default:
      break;
  }
  if (capturing == NULL) return carry_out(op);
  capturing->operations = realloc(capturing->operations, (capturing->count + 1) * sizeof *op);
  capturing->operations[capturing->count++] = *op;
  return true;
}

bool end_program(void) {
  for (uint64_t i = 0; i < MOST_MEMORIES; ++i) {
    if (memories[i].cells != NULL) drop(i);
  }
  return true;
}
