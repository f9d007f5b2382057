/* One turn of the daemon's loop: events out of a ring, through the core, commands into the ring.
 * Python reads this file. */
#ifndef DEEPUM_CORE_TURN_H
#define DEEPUM_CORE_TURN_H

#include "core.h"
#include "ring_reader.h"

typedef struct deepum_turn {
  uint64_t event_bytes; /* taken this time; they lie in the caller's buffer */
  uint64_t commands;    /* written this time */
  uint64_t decided;     /* last sequence processed, over all turns */
  uint64_t published;   /* the decided_sequence the program sees; behind `decided` while blocked */
  uint32_t wake_mover;  /* 1: write the mover's eventfd */
  uint32_t blocked;     /* 1: the command ring is full; come again, even if no events do */
} deepum_turn;

/* `turn` starts as zeros and is kept from turn to turn. Events are taken only while the command
 * ring has room, so a mover that does not read holds up its own session and nothing else. `most` is
 * at least DEEPUM_MAX_EVENT_WORDS * 8. */
void deepum_take_turn(deepum_ring_reader* reader, deepum_core* core, uint8_t* records, size_t most,
                      deepum_turn* turn);

#endif
