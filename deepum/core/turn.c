#include "turn.h"

void deepum_take_turn(deepum_ring_reader* reader, deepum_core* core, uint8_t* records, size_t most,
                      deepum_turn* turn) {
  deepum_command commands[64];
  turn->event_bytes = 0;
  turn->commands = 0;
  turn->wake_mover = 0;
  if (!turn->blocked) {
    turn->event_bytes = deepum_ring_take(reader, records, most);
    if (turn->event_bytes == 0) return;
    const uint64_t last = deepum_core_process(core, records, turn->event_bytes);
    if (last > turn->decided) turn->decided = last;
    deepum_ring_want_faults(reader, deepum_core_wants_faults(core));
    deepum_ring_want_free_memory(reader, deepum_core_wants_free_memory(core));
    deepum_ring_want_times(reader, deepum_core_wants_times(core));
    deepum_ring_want_reads(reader, deepum_core_wants_reads(core));
  }
  turn->blocked = 0;
  for (;;) {
    const size_t room = deepum_ring_room(reader);
    if (room == 0) {
      turn->blocked = !reader->broken;
      break;
    }
    const size_t count = deepum_core_take_commands(core, commands, room < 64 ? room : 64);
    if (count == 0) break;
    turn->commands += deepum_ring_write(reader, commands, count);
  }
  /* Partly written commands wake the mover too: it makes the room that the rest waits for. */
  if (!turn->blocked) turn->published = turn->decided;
  turn->wake_mover = (uint32_t)deepum_ring_publish_decided(reader, turn->published);
}
