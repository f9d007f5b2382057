#include "mover.hpp"

#include <algorithm>

#include "allocations.hpp"
#include "driver.hpp"
#include "log.hpp"
#include "markers.hpp"
#include "session.hpp"

namespace deepum::runtime {
namespace {

constexpr unsigned kMostFailures = 16;  // in a row; then the driver does not want us

int direction_of(const deepum_command& command) noexcept {
  return command.kind == DEEPUM_COMMAND_EVICT || command.kind == DEEPUM_COMMAND_DISCARD ? DEEPUM_DIRECTION_OUT : DEEPUM_DIRECTION_IN;
}

CUmemLocation location_of(int ordinal) noexcept {
  CUmemLocation location{};
  location.type = ordinal < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = ordinal < 0 ? 0 : ordinal;
  return location;
}

}  // namespace

void Mover::set_context(CUdevice device, CUcontext context) noexcept {
  if (device >= 0 && device < DEEPUM_MAX_DEVICES && devices_[device].context == nullptr) {
    devices_[device].context = context;
  }
}

void Mover::accept(const deepum_command& command) {
  if (command.device < DEEPUM_MAX_DEVICES && command.kind >= DEEPUM_COMMAND_PREFETCH && command.kind <= DEEPUM_COMMAND_ADVISE) {
    devices_[command.device].directions[direction_of(command)].waiting.push_back(command);
  }
}

void Mover::clear() noexcept {
  for (Device& device : devices_) {
    for (Direction& direction : device.directions) {
      direction.waiting.clear();
    }
  }
  waits_for_marker_.store(false, std::memory_order_relaxed);
}

bool Mover::prepare(CUdevice ordinal, Device& device) noexcept {
  const Driver& d = driver();
  if (device.context == nullptr || d.CtxSetCurrent == nullptr || d.StreamCreate == nullptr || d.EventRecord == nullptr) {
    return false;
  }
  if (d.CtxSetCurrent(device.context) != CUDA_SUCCESS) {
    return false;
  }
  if (!relaxed_ && d.ThreadExchangeStreamCaptureMode != nullptr) {
    // A global-mode capture of the program must not be broken by calls from this thread.
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    d.ThreadExchangeStreamCaptureMode(&mode);
    relaxed_ = true;
  }
  if (!device.ready) {
    for (Direction& direction : device.directions) {
      if (d.StreamCreate(&direction.stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
        say(1, "no stream of its own on GPU %d; it runs as plain unified memory", ordinal);
        failed_ = true;
        return false;
      }
    }
    device.ready = true;
  }
  return true;
}

bool Mover::issue() noexcept {
  bool left = false;
  bool marker = false;
  for (CUdevice ordinal = 0; ordinal < DEEPUM_MAX_DEVICES && !failed_; ++ordinal) {
    Device& device = devices_[ordinal];
    Direction& in = device.directions[DEEPUM_DIRECTION_IN];
    Direction& out = device.directions[DEEPUM_DIRECTION_OUT];
    if (in.waiting.empty() && out.waiting.empty()) {
      continue;
    }
    if (!prepare(ordinal, device)) {
      left = true;
      continue;
    }
    // Evictions first: they make the room.
    bool progress = true;
    while (progress && !failed_) {
      progress = false;
      for (const int which : {DEEPUM_DIRECTION_OUT, DEEPUM_DIRECTION_IN}) {
        while (!device.directions[which].waiting.empty() && try_issue(ordinal, device, which) == Step::issued) {
          progress = true;
        }
      }
    }
    left |= !in.waiting.empty() || !out.waiting.empty();
    marker |= left;
  }
  if (failed_) {
    clear();
    return false;
  }
  waits_for_marker_.store(marker, std::memory_order_relaxed);
  return left;
}

bool Mover::may_hand_over(Direction& direction) noexcept {
  if (settings().lock_step) {
    return true;
  }
  const Driver& d = driver();
  while (!direction.outstanding.empty() && d.EventQuery != nullptr && d.EventQuery(direction.outstanding.front().event) == CUDA_SUCCESS) {
    direction.outstanding_bytes -= direction.outstanding.front().bytes;
    direction.outstanding.pop_front();
  }
  return direction.outstanding_bytes < settings().handover_bytes;
}

// Queues the waits; false: a marker is still to come (the waits queued so far are harmless).
bool Mover::wait_for_launches(Direction& direction, const deepum_command& command) noexcept {
  if (command.after_sequence == 0) {
    return true;
  }
  struct Wait {
    std::uint32_t stream;
    CUevent event;
    std::uint64_t covered;
  };
  Wait waits[DEEPUM_MAX_STREAMS];
  std::size_t count = 0;
  for (std::uint64_t mask = command.stream_mask; mask != 0; mask &= mask - 1) {
    const auto id = static_cast<std::uint32_t>(__builtin_ctzll(mask));
    if (direction.waited_for_launch[id] >= command.after_sequence) {
      continue;
    }
    Wait wait{id, nullptr, 0};
    switch (Markers::instance().cover(id, command.after_sequence, &wait.event, &wait.covered)) {
      case Markers::Cover::not_yet:
        return false;
      case Markers::Cover::nothing_to_wait:
        break;
      case Markers::Cover::marker:
        waits[count++] = wait;
        break;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (direction.waited_for_launch[waits[i].stream] < waits[i].covered) {
      driver().StreamWaitEvent(direction.stream, waits[i].event, 0);
      direction.waited_for_launch[waits[i].stream] = waits[i].covered;
    }
  }
  return true;
}

Mover::Step Mover::try_issue(CUdevice ordinal, Device& device, int which) noexcept {
  Direction& direction = device.directions[which];
  Direction& other = device.directions[1 - which];
  const deepum_command command = direction.waiting.front();
  // Ids rise over both directions, so the other one is past after_move when its next command has a higher id.
  if (command.after_move != 0 && !other.waiting.empty() && other.waiting.front().id <= command.after_move) {
    return Step::later;
  }
  if (!may_hand_over(direction) || !wait_for_launches(direction, command)) {
    return Step::later;
  }
  if (command.after_move > direction.waited_for_move) {
    const auto done = std::lower_bound(other.done.begin(), other.done.end(), command.after_move,
                                       [](const Done& d, std::uint64_t id) { return d.id < id; });
    if (done != other.done.end()) {
      driver().StreamWaitEvent(direction.stream, done->event, 0);
      direction.waited_for_move = done->id;
    }  // else it was stale or failed: nothing to wait for
  }
  direction.waiting.pop_front();
  if (command.kind == DEEPUM_COMMAND_DISCARD) {  // its commit protocol is not here yet: content stays
    report(command, DEEPUM_MOVED_CANCELLED, CUDA_SUCCESS);
    return Step::issued;
  }
  std::uint64_t bytes = 0;
  bool stale = false;
  const CUresult result = move(ordinal, command, direction.stream, &bytes, &stale);
  if (stale) {
    report(command, DEEPUM_MOVED_STALE, CUDA_SUCCESS);
  } else if (result != CUDA_SUCCESS) {
    report(command, DEEPUM_MOVED_FAILED, result);
    if (++failures_ >= kMostFailures) {
      say(1, "the driver refuses to move memory (CUresult %d); it runs as plain unified memory", static_cast<int>(result));
      failed_ = true;
    }
  } else {
    failures_ = 0;
    note_done(direction, command.id, bytes);
  }
  return Step::issued;
}

CUresult Mover::move(CUdevice ordinal, const deepum_command& command, CUstream stream, std::uint64_t* bytes, bool* stale) noexcept {
  const Driver& d = driver();
  const Allocations::Pin pin = Allocations::instance().pin(command.slot, command.generation, command.first_block, command.block_count);
  if (!pin) {
    *stale = true;
    return CUDA_SUCCESS;
  }
  if (command.kind == DEEPUM_COMMAND_ADVISE) {
    const auto advice = static_cast<CUmem_advise>(command.advice);
    if (d.MemAdvise_v2 != nullptr) {
      return d.MemAdvise_v2(pin.address, pin.bytes, advice, location_of(command.location));
    }
    return d.MemAdvise != nullptr ? d.MemAdvise(pin.address, pin.bytes, advice, command.location < 0 ? CU_DEVICE_CPU : command.location)
                                  : CUDA_ERROR_NOT_SUPPORTED;
  }
  const int to = command.kind == DEEPUM_COMMAND_EVICT ? -1 : ordinal;
  *bytes = pin.bytes;
  if (d.MemPrefetchAsync_v2 != nullptr) {
    return d.MemPrefetchAsync_v2(pin.address, pin.bytes, location_of(to), 0, stream);
  }
  return d.MemPrefetchAsync != nullptr ? d.MemPrefetchAsync(pin.address, pin.bytes, to < 0 ? CU_DEVICE_CPU : to, stream)
                                       : CUDA_ERROR_NOT_SUPPORTED;
}

void Mover::note_done(Direction& direction, std::uint64_t id, std::uint64_t bytes) noexcept {
  const Driver& d = driver();
  CUevent event = nullptr;
  if (direction.done.size() >= kKept) {
    event = direction.done.front().event;
    if (!direction.outstanding.empty() && direction.outstanding.front().event == event) {
      direction.outstanding_bytes -= direction.outstanding.front().bytes;
      direction.outstanding.pop_front();
    }
    direction.done.pop_front();
  } else if (d.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return;
  }
  if (d.EventRecord(event, direction.stream) != CUDA_SUCCESS) {
    return;
  }
  direction.done.push_back({id, bytes, event});
  if (!settings().lock_step) {
    direction.outstanding.push_back({id, bytes, event});
    direction.outstanding_bytes += bytes;
  }
}

void Mover::report(const deepum_command& command, deepum_moved_status status, CUresult error) noexcept {
  deepum_moved_event event{};
  event.header.words = sizeof event / 8;
  event.header.kind = DEEPUM_EVENT_MOVED;
  event.header.device = command.device;
  event.command = command.id;
  event.status = status;
  event.error = static_cast<std::uint32_t>(error);
  emit(&event.header);
}

}  // namespace deepum::runtime
