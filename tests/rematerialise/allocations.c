// Counts what PyTorch's CPU allocator has of the system: blocks that libc10.so asks posix_memalign
// for, until they are freed. Preloaded into a program, which reads the counts through ctypes.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern void __libc_free(void* pointer);
extern void* __libc_memalign(size_t alignment, size_t size);

enum { kPlaces = 1 << 20 };  // a hash table with linear probing, of blocks that live

static void* blocks[kPlaces];
static const char* begin_of_c10;
static const char* end_of_c10;
static long now;
static long peak;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void* pointer) {
  return (size_t)(((uintptr_t)pointer >> 6) * 0x9E3779B97F4A7C15ULL >> 44);
}

// The code of libc10.so lies in this range.
void allocations_from(const char* begin, const char* end) {
  begin_of_c10 = begin;
  end_of_c10 = end;
}

long allocations_now(void) { return now; }
long allocations_peak(void) { return peak; }
void allocations_reset(void) { peak = now; }

int posix_memalign(void** result, size_t alignment, size_t size) {
  void* pointer = __libc_memalign(alignment, size);
  if (pointer == NULL) return ENOMEM;
  *result = pointer;
  const char* caller = __builtin_return_address(0);
  if (caller >= begin_of_c10 && caller < end_of_c10) {
    pthread_mutex_lock(&lock);
    size_t place = place_of(pointer);
    while (blocks[place] != NULL) place = (place + 1) % kPlaces;
    blocks[place] = pointer;
    now += (long)malloc_usable_size(pointer);
    if (now > peak) peak = now;
    pthread_mutex_unlock(&lock);
  }
  return 0;
}

void free(void* pointer) {
  if (pointer != NULL && begin_of_c10 != NULL) {
    pthread_mutex_lock(&lock);
    size_t place = place_of(pointer);
    while (blocks[place] != NULL && blocks[place] != pointer) place = (place + 1) % kPlaces;
    if (blocks[place] != NULL) {
      now -= (long)malloc_usable_size(pointer);
      blocks[place] = NULL;
      // What lies behind it may have been put off by it.
      for (size_t next = (place + 1) % kPlaces; blocks[next] != NULL; next = (next + 1) % kPlaces) {
        void* moved = blocks[next];
        blocks[next] = NULL;
        size_t to = place_of(moved);
        while (blocks[to] != NULL) to = (to + 1) % kPlaces;
        blocks[to] = moved;
      }
    }
    pthread_mutex_unlock(&lock);
  }
  __libc_free(pointer);
}
