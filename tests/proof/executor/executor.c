#define _GNU_SOURCE
#include "executor.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

operation current_program;

static const char* const names[] = {
#define OP(name) #name,
    OPERATIONS(OP)
#undef OP
};
static bool tracing;
static bool broken; /* an operation failed */
static uint64_t hash;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

bool failed(const operation* op, const char* what, const char* why) {
  pthread_mutex_lock(&output);
  if (!broken)
    printf("%llu failed at line %u, %s: %s: %s\n", (unsigned long long)current_program.at[0],
           op->line, names[op->code], what, why);
  broken = true;
  pthread_mutex_unlock(&output);
  return false;
}

/* Sums, so that threads may read in any order. */
static void observe(const operation* op) {
  const cells read = cells_of(op->at[0], op->at[1], op->at[2]);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < read.count; ++i)
    sum += mixed(*cell(&read, i) + mixed(op->line * 4096ull + i));
  pthread_mutex_lock(&output);
  hash += sum;
  if (tracing) {
    printf("line %u:", op->line);
    for (uint64_t i = 0; i < read.count; ++i) printf(" %llx", (unsigned long long)*cell(&read, i));
    printf("\n");
  }
  pthread_mutex_unlock(&output);
}

static void carry_out(const operation* op) {
  if (__atomic_load_n(&broken, __ATOMIC_RELAXED)) return;
  if (op->code == OP_hr) {
    observe(op);
  } else {
    execute(op);
  }
}

/* ---- threads: 0 is the main one; the others wait for a stretch of operations, of which each
 * carries out its own ---- */

typedef struct worker {
  pthread_t thread;
  pthread_cond_t wake;
  const operation *from, *to;
  uint16_t number;
  bool busy;
} worker;
static worker workers[MOST_THREADS];
static int worker_count = 1;
static pthread_mutex_t hand_over = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;

static void stretch(const operation* from, const operation* to, uint16_t thread) {
  for (; from != to; ++from) {
    if (from->thread == thread) carry_out(from);
  }
}

static void* work(void* argument) {
  worker* const self = argument;
  pthread_mutex_lock(&hand_over);
  for (;;) {
    while (!self->busy) pthread_cond_wait(&self->wake, &hand_over);
    pthread_mutex_unlock(&hand_over);
    stretch(self->from, self->to, self->number);
    pthread_mutex_lock(&hand_over);
    self->busy = false;
    pthread_cond_signal(&finished);
  }
  return NULL;
}

static void run_threads(const operation* from, const operation* to, uint16_t first, uint16_t last) {
  pthread_mutex_lock(&hand_over);
  for (; worker_count <= last; ++worker_count) {
    worker* const made = &workers[worker_count];
    made->number = (uint16_t)worker_count;
    pthread_cond_init(&made->wake, NULL);
    if (pthread_create(&made->thread, NULL, work, made) != 0) abort();
  }
  for (uint16_t i = first < 1 ? 1 : first; i <= last; ++i) {
    workers[i].from = from;
    workers[i].to = to;
    workers[i].busy = true;
    pthread_cond_signal(&workers[i].wake);
  }
  pthread_mutex_unlock(&hand_over);
  if (first == 0) stretch(from, to, 0);
  pthread_mutex_lock(&hand_over);
  for (uint16_t i = 1; i < worker_count; ++i) {
    while (workers[i].busy) pthread_cond_wait(&finished, &hand_over);
  }
  pthread_mutex_unlock(&hand_over);
}

static void run_program(const operation* at, const operation* end) {
  current_program = *at++;
  broken = false;
  hash = 0;
  if (!backend_has_threads) {
    for (; at != end; ++at) carry_out(at);
  }
  while (at != end) {
    const operation* to = at;
    if (at->code == OP_par) {
      while (to->code != OP_end) ++to;
      run_threads(at + 1, to, 0, (uint16_t)(current_program.at[2] - 1));
      ++to;
    } else {
      while (to != end && to->thread == at->thread && to->code != OP_par) ++to;
      run_threads(at, to, at->thread, at->thread);
    }
    at = to;
  }
  const bool complete = !broken;
  if (end_program() && complete)
    printf("%llu %016llx\n", (unsigned long long)current_program.at[0], (unsigned long long)hash);
  fflush(stdout);
}

/* ---- text ---- */

static bool parse(char* text, uint32_t line, operation* op) {
  memset(op, 0, sizeof *op);
  op->line = line;
  op->thread = (uint16_t)strtoul(text, &text, 10);
  const char* const name = strtok(text, " \n");
  op->code = OP_CODES;
  for (uint16_t code = 0; name != NULL && code < OP_CODES; ++code) {
    if (strcmp(names[code], name) == 0) op->code = code;
  }
  int count = 0;
  for (char* word = strtok(NULL, " \n"); word != NULL && count < MOST_ARGUMENTS;
       word = strtok(NULL, " \n")) {
    op->at[count++] = strtoull(word, NULL, 10);
  }
  return op->code != OP_CODES && op->thread < MOST_THREADS;
}

/* All of it is read before anything runs: a child process that exits would put back what is read
 * ahead, in the file that they share. */
static FILE* open_text(const char* path) {
  FILE* const file = fopen(path, "r");
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  const long bytes = ftell(file);
  char* const text = malloc((size_t)bytes + 1);
  rewind(file);
  const size_t got = fread(text, 1, (size_t)bytes, file);
  fclose(file);
  return fmemopen(text, got, "r");
}

int main(int argc, char** argv) {
  tracing = argc > 1 && strcmp(argv[1], "--trace") == 0;
  if (argc != (tracing ? 4 : 3)) {
    fprintf(stderr, "usage: %s [--trace] KERNELS PROGRAMS\n", argv[0]);
    return 2;
  }
  FILE* const file = open_text(argv[argc - 1]);
  if (file == NULL || !backend_open(argv[argc - 2])) {
    fprintf(stderr, "%s: cannot be opened\n", argv[argc - 1]);
    return 2;
  }
  size_t capacity = 1024, count = 0;
  operation* operations = malloc(capacity * sizeof *operations);
  char text[512];
  uint32_t line = 0;
  while (fgets(text, sizeof text, file) != NULL) {
    operation op;
    if (!parse(text, ++line, &op)) {
      fprintf(stderr, "%s:%u: is not an operation\n", argv[argc - 1], line);
      return 2;
    }
    if (op.code == OP_program) {
      if (count != 0) run_program(operations, operations + count);
      count = 0;
      op.line = line = 0;
    }
    if (count == capacity) operations = realloc(operations, (capacity *= 2) * sizeof *operations);
    operations[count++] = op;
  }
  if (count != 0) run_program(operations, operations + count);
  free(operations);
  fclose(file);
  return 0;
}
