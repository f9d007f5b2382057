#include "progress.hpp"

#include "contexts.hpp"
#include "driver.hpp"
#include "progress_time.hpp"
#include "session.hpp"

namespace deepum::runtime {

void Progress::create(Look& look) noexcept {
  if (!look.event && driver().EventCreate &&
      driver().EventCreate(&look.event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    look.event = nullptr;
  }
}

Progress::Found Progress::find(const Stream& stream, std::uint64_t emitted) noexcept {
  Found found{0, emitted, 0};
  for (std::uint64_t i = stream.made; i > 0 && i + kKept > stream.made; --i) {
    const Look& look = stream.looks[(i - 1) % kKept];
    if (look.event && driver().EventQuery && driver().EventQuery(look.event) == CUDA_SUCCESS) {
      found.completed = look.sequence;
      found.completed_at = time_of(look);
      break;
    }
    found.begun = look.sequence;
  }
  return found;
}

std::uint64_t Progress::time_of(const Look& look) noexcept {
  float milliseconds = -1;
  const bool known =
      first_.sequence != 0 && first_.context == look.context && driver().EventElapsedTime &&
      driver().EventElapsedTime(&milliseconds, first_.event, look.event) == CUDA_SUCCESS;
  return known ? completed_at(milliseconds) : 0;
}

void Progress::begin(MarkerTable& markers) {
  const CUcontext context = current_context();
  markers.each_stream([&](std::uint32_t id, StreamMarkers& of) {
    if (!streams_[id]) {
      streams_[id] = std::make_unique<Stream>();
    }
    Stream& stream = *streams_[id];
    const std::uint64_t last =
        stream.made == 0 ? 0 : stream.looks[(stream.made - 1) % kKept].sequence;
    if (of.emitted() > last) {
      Look& look = stream.looks[stream.made % kKept];
      if (look.context != context) {
        look = {0, nullptr, context};  // the other context's ends with it
      }
      create(look);
      if (first_.context != context) {
        first_ = {0, nullptr, context};
      }
      create(first_);
      if (first_.event && first_.sequence == 0) {
        first_.sequence = of.record_behind(first_.event, context);
      }
      const std::uint64_t sequence = look.event ? of.record_behind(look.event, context) : 0;
      if (sequence > last) {
        look.sequence = sequence;
        ++stream.made;
      }
    }
    const Found found = find(stream, of.emitted());
    stream.completed = found.completed;
    stream.completed_at = found.completed_at;
  });
}

void Progress::tell(MarkerTable& markers, StallClock& stalls) noexcept {
  markers.each_stream([&](std::uint32_t id, StreamMarkers& of) {
    if (!streams_[id] || streams_[id]->made == 0) {  // of another context: nothing is known of it
      return;
    }
    if (stalls.knows(id)) {
      deepum_waited_event waited{};
      waited.header.words = sizeof waited / 8;
      waited.header.kind = DEEPUM_EVENT_WAITED;
      waited.stream = id;
      waited.completed = streams_[id]->completed;
      waited.waited = stalls.waited(id, waited.completed);
      emit(&waited.header);
    }
    deepum_progress_event event{};
    event.header.words = sizeof event / 8;
    event.header.kind = DEEPUM_EVENT_PROGRESS;
    event.stream = id;
    event.completed = streams_[id]->completed;
    event.completed_at = streams_[id]->completed_at;
    event.begun = find(*streams_[id], of.emitted()).begun;
    emit(&event.header);
  });
}

}  // namespace deepum::runtime
