/* The daemon's end of the shared memory of ring.h: takes events out, puts commands in.
 *
 * The program on the other end is not trusted. Every position and length is checked against the
 * reader's own copy of what it knows; nonsense sets `broken`, after which every function does
 * nothing and the session should be closed. The caller must have made sure that the memory cannot
 * shrink (F_SEAL_SHRINK). One thread at a time.
 *
 * Same restrictions as records.h: Python reads this file.
 */
#ifndef DEEPUM_WIRE_RING_READER_H
#define DEEPUM_WIRE_RING_READER_H

#include <stddef.h>
#include <stdint.h>

#include "records.h"
#include "ring.h"

#ifdef __cplusplus
extern "C" {
#endif

enum deepum_ring_fault {
  DEEPUM_RING_SOUND = 0,
  DEEPUM_RING_BAD_LENGTH = 1, /* a record's length is impossible where it stands */
  /* Producers claim more than the ring holds, or fewer than were published. */
  DEEPUM_RING_BAD_RESERVED = 2,
  DEEPUM_RING_BAD_CONSUMED = 3 /* the mover claims commands that were never written */
};

typedef struct deepum_ring_reader {
  deepum_ring_control* control;
  uint8_t* events;
  uint8_t* commands;
  uint64_t event_bytes; /* size of the event ring */
  uint64_t command_bytes;
  uint64_t event_consumed;
  uint64_t command_written;
  uint32_t broken; /* enum deepum_ring_fault */
  /* 1: nobody reads commands any more: there is always room, and they are dropped. */
  uint32_t unheard;
} deepum_ring_reader;

/* Takes the mapping as the program left it: 0, or -1 when it is not a ring of this version or does
 * not fit into `bytes`. */
int deepum_ring_open(deepum_ring_reader* reader, void* memory, size_t bytes);

/* Copies whole published records, without padding, into `records` (at least DEEPUM_MAX_EVENT_WORDS
 * * 8 bytes long), frees their place in the ring, and returns their bytes. 0: none yet, or broken.
 */
size_t deepum_ring_take(deepum_ring_reader* reader, uint8_t* records, size_t most);

/* Writes as many of the commands as there is room for and publishes them; returns how many. */
size_t deepum_ring_write(deepum_ring_reader* reader, const deepum_command* commands, size_t count);

/* How many commands there is room for. */
size_t deepum_ring_room(deepum_ring_reader* reader);

/* Tells the program whether to observe faults: 1 or 0. Before the decisions that it goes with are
 * published. */
void deepum_ring_want_faults(deepum_ring_reader* reader, int wanted);

/* Likewise, whether to tell what is free of its devices. */
void deepum_ring_want_free_memory(deepum_ring_reader* reader, int wanted);
/* Likewise of the times of launches. */
void deepum_ring_want_times(deepum_ring_reader* reader, int wanted);
/* Likewise of what launches only read. */
void deepum_ring_want_reads(deepum_ring_reader* reader, int wanted);

/* Publishes decided_sequence. Returns 1 if the mover sleeps and its eventfd must be written. */
int deepum_ring_publish_decided(deepum_ring_reader* reader, uint64_t sequence);

/* The way to sleep: if prepare returns 1 then wait for the daemon's eventfd, else there is work
 * already; then woke in both cases. */
int deepum_ring_prepare_sleep(deepum_ring_reader* reader);
void deepum_ring_woke(deepum_ring_reader* reader);

/* 1 if a record is published and not yet taken. */
int deepum_ring_pending(const deepum_ring_reader* reader);

/* prepare_sleep, wait for the eventfd or a socket's hang-up for at most timeout_ms (-1: for ever),
 * woke. `spin` looks at the ring come first. Returns 1: there may be records; 0: time is up; 2: the
 * socket has something to say (closed, most likely). socket -1: none. */
int deepum_ring_wait(deepum_ring_reader* reader, int event_fd, int socket, uint32_t spin,
                     int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
