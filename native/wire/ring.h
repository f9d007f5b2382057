/* Layout of the memory that a program and the daemon share: one control page, the event ring, the
 * command ring.
 *
 * The program creates it as a memfd, seals its size, and passes it by file descriptor. Positions
 * are byte counts that only rise; a position modulo the ring's size is its place. Event records
 * never wrap: DEEPUM_EVENT_PAD fills the rest.
 *
 * Events: many producers (the program's threads), one consumer (the daemon). A producer reserves by
 * compare-and-swap on event_reserved, writes the record's body, and publishes by a release store of
 * the first word (words, kind, flags, device), which the consumer zeroes after reading. sequence =
 * position / 8 + 1. Commands: one producer (the daemon), one consumer (the mover); fixed-size
 * records.
 *
 * Same restrictions as records.h: Python reads this file.
 */
#ifndef DEEPUM_WIRE_RING_H
#define DEEPUM_WIRE_RING_H

#include <stdint.h>

enum {
  DEEPUM_CONTROL_BYTES = 4096,
  DEEPUM_EVENT_RING_BYTES = 4194304,  /* power of two */
  DEEPUM_COMMAND_RING_BYTES = 1048576 /* power of two */
};

/* Each group of members is on a cache line of its own (64 bytes). */
typedef struct deepum_ring_control {
  uint8_t magic[8]; /* "DEEPUMRG" */
  uint32_t version; /* DEEPUM_WIRE_VERSION */
  uint32_t event_ring_bytes;
  uint32_t command_ring_bytes;
  uint32_t reserved0[11];

  uint64_t event_reserved; /* producers */
  uint64_t events_lost;
  /* Requests to share managed memory with other processes or devices that the driver refused. */
  uint64_t handles_refused;
  /* Allocations that GPU and host memory together had no room for. */
  uint64_t allocations_refused;
  /* Bytes that can be allocated on the devices used so far, host memory included. */
  uint64_t allocatable_bytes;
  uint64_t reserved1[3];

  uint64_t event_consumed; /* consumer */
  /* All commands caused by events up to this one are in the command ring. */
  uint64_t decided_sequence;
  uint64_t reserved2[6];

  uint64_t command_written; /* daemon */
  uint64_t reserved3[7];

  uint64_t command_consumed; /* mover */
  /* Mover: commands that it has taken and not yet handed to the driver, after its latest round. */
  uint64_t moves_waiting;
  uint64_t reserved4[6];

  uint32_t daemon_sleeps; /* 1: write the daemon's eventfd after publishing */
  /* 1: write the mover's eventfd after publishing commands or decided_sequence. */
  uint32_t mover_sleeps;
  uint32_t program_left; /* 1: orderly end, no more events */
  uint32_t daemon_left;  /* 1: the daemon gave this session up; the program goes on alone */
  /* Daemon: 1 while observed faults (DEEPUM_EVENT_FAULT) are of use to it; changes only with
   * launches decided. */
  uint32_t wants_faults;
  /* Daemon: 1 while FREE_MEMORY events are of use to it; changes only with launches decided. */
  uint32_t wants_free_memory;
  /* Daemon: 1 while it wants to know how long launches wait for their moves (WAITED events). */
  uint32_t wants_times;
  /* Daemon: 1 while it is of use to know what launches only read (declared ranges of EXECUTE
   * events). */
  uint32_t wants_reads;
  uint64_t reserved5[4];
} deepum_ring_control;

/* First message on the daemon's Unix socket (SOCK_SEQPACKET), program to daemon, with three file
 * descriptors in this order: the memory above, the daemon's eventfd, the mover's eventfd.
 * settings_bytes of "NAME=VALUE\0" follow: the DEEPUM_* environment. */
typedef struct deepum_hello {
  uint8_t magic[8]; /* "DEEPUMHI" */
  uint32_t version;
  uint32_t settings_bytes; /* <= 65536 */
  uint32_t pid;
  uint32_t reserved0;
} deepum_hello;

/* The answer. On refusal a line of text follows in the same message, and the program goes on alone.
 * The connection then stays open for as long as the session lives; its closing ends the session. */
typedef struct deepum_welcome {
  uint8_t magic[8]; /* "DEEPUMOK" or "DEEPUMNO" */
  uint32_t version;
  uint32_t text_bytes;
} deepum_welcome;

#endif
