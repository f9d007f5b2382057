/* Static allocation: buffers whose lifetimes are known get offsets in one arena, so that no two
 * that live at the same time overlap (docs/arena.md). Lifetimes are half-open, [begin, end); sizes
 * and offsets are bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deepum_arena_buffer {
  int64_t begin;
  int64_t end;
  int64_t size;
  int64_t alignment; /* its offset is a multiple of it */
} deepum_arena_buffer;

enum deepum_arena_fit {
  DEEPUM_ARENA_LOWEST = 0,   /* the lowest gap that is large enough */
  DEEPUM_ARENA_SMALLEST = 1, /* the smallest one, the lowest of several */
  DEEPUM_ARENA_ABOVE = 2     /* above all that was placed and lives at the same time */
};

enum deepum_arena_found {
  DEEPUM_ARENA_DONE = 0,   /* nothing lower is asked for, or there is none */
  DEEPUM_ARENA_BETTER = 1, /* offsets that need less, or a bound that is higher */
  DEEPUM_ARENA_LATE = 2,   /* the time is spent */
  DEEPUM_ARENA_FAILED = 3  /* memory is short */
};

typedef struct deepum_arena_problem deepum_arena_problem;
typedef struct deepum_arena_search deepum_arena_search;

/* NULL where a lifetime is empty or begins before 0, a size is negative, an alignment is not
 * positive, all sizes and alignments together are beyond 62 bits, or memory is short. */
deepum_arena_problem* deepum_arena_create(const deepum_arena_buffer* buffers, size_t count);
void deepum_arena_destroy(deepum_arena_problem* problem);
/* The most bytes that live at one time: no arena is smaller. */
int64_t deepum_arena_load(const deepum_arena_problem* problem);
/* The most buffers that live at one time. */
int64_t deepum_arena_overlap(const deepum_arena_problem* problem);
/* The end of the highest buffer; -1 where an offset is negative or not aligned, or two buffers
 * overlap; -2 where memory is short. */
int64_t deepum_arena_height(const deepum_arena_problem* problem, const int64_t* offsets);
/* Places all buffers in that order (each number once). Returns the height, or -2. */
int64_t deepum_arena_place(const deepum_arena_problem* problem, const int32_t* order,
                           enum deepum_arena_fit fit, int64_t* offsets);

/* A search for an arena of `goal` bytes at most, or of the load where that is more. It goes on
 * where it was at each call, and the same seed finds the same. The problem has to outlive it. */
deepum_arena_search* deepum_arena_search_create(const deepum_arena_problem* problem, int64_t goal,
                                                uint64_t seed);
void deepum_arena_search_destroy(deepum_arena_search* search);
/* Until something better is found, for so many seconds. `offsets`, `height` and `bound` are the
 * best so far, whatever is returned but DEEPUM_ARENA_FAILED; `bound`: no arena is smaller. */
enum deepum_arena_found deepum_arena_search_next(deepum_arena_search* search, double seconds,
                                                 int64_t* offsets, int64_t* height, int64_t* bound);

#ifdef __cplusplus
}
#endif
