#define _GNU_SOURCE
#include "ring_reader.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

int deepum_ring_open(deepum_ring_reader* reader, void* memory, size_t bytes) {
  memset(reader, 0, sizeof *reader);
  if (bytes < DEEPUM_CONTROL_BYTES) return -1;
  deepum_ring_control* control = memory;
  if (memcmp(control->magic, "DEEPUMRG", 8) != 0 || control->version != DEEPUM_WIRE_VERSION)
    return -1;
  const uint64_t event_bytes = __atomic_load_n(&control->event_ring_bytes, __ATOMIC_RELAXED);
  const uint64_t command_bytes = __atomic_load_n(&control->command_ring_bytes, __ATOMIC_RELAXED);
  if (!power_of_two(event_bytes) || !power_of_two(command_bytes)) return -1;
  if (event_bytes < 2ull * DEEPUM_MAX_EVENT_WORDS * 8 || command_bytes < sizeof(deepum_command))
    return -1;
  if (DEEPUM_CONTROL_BYTES + event_bytes + command_bytes > bytes) return -1;
  reader->control = control;
  reader->events = (uint8_t*)memory + DEEPUM_CONTROL_BYTES;
  reader->commands = reader->events + event_bytes;
  reader->event_bytes = event_bytes;
  reader->command_bytes = command_bytes;
  return 0;
}

static uint64_t first_word(const deepum_ring_reader* reader) {
  const uint8_t* place = reader->events + (reader->event_consumed & (reader->event_bytes - 1));
  return __atomic_load_n((const uint64_t*)place, __ATOMIC_ACQUIRE);
}

size_t deepum_ring_take(deepum_ring_reader* reader, uint8_t* records, size_t most) {
  if (reader->broken || !reader->control) return 0;
  size_t taken = 0;
  uint64_t reserved = 0;
  int has_reserved = 0;
  for (;;) {
    /* Read once: the other end may change it while we look. */
    const uint64_t word = first_word(reader);
    if (word == 0) break;
    const uint64_t words = word & 0xffff;
    const uint64_t kind = (word >> 16) & 0xff;
    const uint64_t bytes = words * 8;
    const uint64_t place = reader->event_consumed & (reader->event_bytes - 1);
    if (words < (kind == DEEPUM_EVENT_PAD ? 1 : 2) || words > DEEPUM_MAX_EVENT_WORDS ||
        place + bytes > reader->event_bytes) {
      reader->broken = DEEPUM_RING_BAD_LENGTH;
      break;
    }
    if (!has_reserved || reserved - reader->event_consumed < bytes) {
      reserved = __atomic_load_n(&reader->control->event_reserved, __ATOMIC_ACQUIRE);
      has_reserved = 1;
      if (reserved - reader->event_consumed < bytes ||
          reserved - reader->event_consumed > reader->event_bytes) {
        reader->broken = DEEPUM_RING_BAD_RESERVED;
        break;
      }
    }
    if (kind != DEEPUM_EVENT_PAD) {
      if (taken + bytes > most) break;
      memcpy(records + taken, reader->events + place, bytes);
      memcpy(records + taken, &word, 8);
      taken += bytes;
    }
    /* Any word of this place may be the first word of a record in the next lap. */
    memset(reader->events + place, 0, bytes);
    reader->event_consumed += bytes;
  }
  __atomic_store_n(&reader->control->event_consumed, reader->event_consumed, __ATOMIC_RELEASE);
  return taken;
}

size_t deepum_ring_room(deepum_ring_reader* reader) {
  if (reader->broken || !reader->control) return 0;
  if (reader->unheard) return (size_t)(reader->command_bytes / sizeof(deepum_command));
  const uint64_t consumed = __atomic_load_n(&reader->control->command_consumed, __ATOMIC_ACQUIRE);
  const uint64_t used = reader->command_written - consumed;
  if (used > reader->command_bytes) {
    reader->broken = DEEPUM_RING_BAD_CONSUMED;
    return 0;
  }
  return (reader->command_bytes - used) / sizeof(deepum_command);
}

size_t deepum_ring_write(deepum_ring_reader* reader, const deepum_command* commands, size_t count) {
  const size_t room = deepum_ring_room(reader);
  if (room == 0) return 0;
  const size_t written = count < room ? count : room;
  if (reader->unheard) return written;
  for (size_t i = 0; i < written; i++) {
    memcpy(reader->commands + (reader->command_written & (reader->command_bytes - 1)), &commands[i],
           sizeof(deepum_command));
    reader->command_written += sizeof(deepum_command);
  }
  __atomic_store_n(&reader->control->command_written, reader->command_written, __ATOMIC_RELEASE);
  return written;
}

static void want(uint32_t* flag, int wanted) {
  if (__atomic_load_n(flag, __ATOMIC_RELAXED) != (uint32_t)(wanted != 0)) {
    __atomic_store_n(flag, (uint32_t)(wanted != 0), __ATOMIC_RELAXED);
  }
}

void deepum_ring_want_faults(deepum_ring_reader* reader, int wanted) {
  if (reader->control) want(&reader->control->wants_faults, wanted);
}

void deepum_ring_want_free_memory(deepum_ring_reader* reader, int wanted) {
  if (reader->control) want(&reader->control->wants_free_memory, wanted);
}

void deepum_ring_want_times(deepum_ring_reader* reader, int wanted) {
  if (reader->control) want(&reader->control->wants_times, wanted);
}

void deepum_ring_want_reads(deepum_ring_reader* reader, int wanted) {
  if (reader->control) want(&reader->control->wants_reads, wanted);
}

int deepum_ring_publish_decided(deepum_ring_reader* reader, uint64_t sequence) {
  if (!reader->control) return 0;
  __atomic_store_n(&reader->control->decided_sequence, sequence, __ATOMIC_RELEASE);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return __atomic_load_n(&reader->control->mover_sleeps, __ATOMIC_RELAXED) != 0;
}

int deepum_ring_pending(const deepum_ring_reader* reader) {
  return reader->control && !reader->broken && first_word(reader) != 0;
}

int deepum_ring_prepare_sleep(deepum_ring_reader* reader) {
  if (!reader->control) return 1;
  __atomic_store_n(&reader->control->daemon_sleeps, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return !deepum_ring_pending(reader);
}

void deepum_ring_woke(deepum_ring_reader* reader) {
  if (reader->control) __atomic_store_n(&reader->control->daemon_sleeps, 0, __ATOMIC_RELEASE);
}

int deepum_ring_wait(deepum_ring_reader* reader, int event_fd, int socket, uint32_t spin,
                     int timeout_ms) {
  for (uint32_t i = 0; i < spin; i++) {
    if (deepum_ring_pending(reader)) return 1;
    relax();
  }
  int answer = 1;
  if (deepum_ring_prepare_sleep(reader)) {
    struct pollfd waits[2] = {{.fd = event_fd, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
    const int ready = poll(waits, socket >= 0 ? 2 : 1, timeout_ms);
    if (ready == 0) answer = 0;
    if (ready > 0 && (waits[0].revents & POLLIN)) {
      uint64_t count;
      if (read(event_fd, &count, sizeof count) < 0) { /* somebody else emptied it */
      }
    } else if (ready > 0 && waits[1].revents) {
      answer = 2;
    }
  }
  deepum_ring_woke(reader);
  return answer;
}
