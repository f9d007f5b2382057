/* A pluggable allocator for PyTorch that follows a planned arena (docs/arena.md, At run time). The
 * first functions have the forms of torch.cuda.memory.CUDAPluggableAllocator's; a stream is a
 * cudaStream_t. All may be called by any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Of one device. Bytes are multiples of 512; what is of the driver is in whole segments. */
typedef struct deepum_arena_allocator_statistics {
  int64_t live_bytes;      /* handed out */
  int64_t peak_live_bytes; /* since the last reset, as all peaks */
  int64_t allocated_bytes; /* ever handed out */
  int64_t held_bytes;      /* of the driver: arena, and pool */
  int64_t peak_held_bytes;
  int64_t arena_bytes;         /* the arena's part of them */
  int64_t arena_live_bytes;    /* handed out of it */
  int64_t plan_bytes;          /* height of the plan that is followed, or was last; 0: none */
  int64_t plan_load_bytes;     /* the most of its buffers that live at one time: the lower bound */
  int64_t plan_requests;       /* requests of its iteration */
  int64_t plan_excluded_bytes; /* of them, what outlives an iteration or is of another stream */
  int64_t requests;
  int64_t planned;      /* requests served at their planned offsets */
  int64_t conflicts;    /* whose planned range was still in use */
  int64_t unplanned;    /* of a followed iteration without an offset */
  int64_t deviating;    /* that were not those of a plan */
  int64_t iterations;   /* planned ones that began */
  int64_t plans;        /* made */
  int64_t driver_calls; /* that took memory or gave it back */
  int64_t failures;     /* requests that failed for lack of memory */
  double plan_seconds;  /* spent on plans */
} deepum_arena_allocator_statistics;

/* NULL for 0 bytes. Where memory is short it throws PyTorch's OutOfMemoryError, as PyTorch's own
 * allocator does; in a process without PyTorch it gives NULL. */
void* deepum_arena_allocator_allocate(size_t bytes, int device, void* stream);
void deepum_arena_allocator_free(void* pointer, size_t bytes, int device, void* stream);
/* It is used on that stream, too: after it is freed it is not handed out before that is done. */
void deepum_arena_allocator_record_stream(void* pointer, void* stream);
/* Memory of the pool that is not handed out is given back to the driver. */
void deepum_arena_allocator_reset(void);
/* No more than that part of the device's memory is held. */
void deepum_arena_allocator_set_memory_fraction(double fraction, int device);
/* Throws PyTorch's Error: memory of a captured graph would be handed out again while the graph is
 * replayed. (The pool's id and a filter of streams are not looked at.) */
void deepum_arena_allocator_refuse_pool(int device);

/* A plan may take so many seconds to find; in a thread of its own, or at the request that ends the
 * iteration. For plans that are begun later. */
void deepum_arena_allocator_configure(double seconds, int in_background);
/* False: there is no such device. */
int deepum_arena_allocator_get_statistics(int device,
                                          struct deepum_arena_allocator_statistics* statistics);
void deepum_arena_allocator_reset_peaks(int device);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
