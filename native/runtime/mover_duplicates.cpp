// Duplicates: commands that advise in stream order, besides moving or instead. Where launches wait for moves, a stream of ours stands still
// while the advice is given; else this thread gives it once all that it has to follow is done, so that no stream ever waits for a thread.
#include <algorithm>

#include "commands.hpp"
#include "driver.hpp"
#include "event_handles.hpp"
#include "mover.hpp"

namespace deepum::runtime {
// All that the lane has to wait for has been done, and all that it waits for already.
bool Mover::reached(MoveLane& lane, const Requirements& required) {
  return done(required) && (!driver().StreamQuery || driver().StreamQuery(lane.stream) != CUDA_ERROR_NOT_READY);
}

bool Mover::done(const Requirements& required) {
  const auto done = [this](CUevent event) { return !event || completed(to_handle(event)); };
  return std::all_of(required.markers.begin(), required.markers.end(), [&](const auto& each) { return done(each.second.event); }) &&
         std::all_of(required.moves.begin(), required.moves.end(),
                     [&](const auto& each) { return done(event_after(*each.first, each.second)); });
}

CUresult Mover::give(MoveLane& lane, int device, const std::vector<Span>& spans, const AdviceList& advice) {
  if (advice.empty()) {
    return CUDA_SUCCESS;
  }
  if (serves_advice()) {
    return server_.queue(contexts_[device].load(std::memory_order_acquire), lane.stream, spans, advice);
  }
  for (const Advice& each : advice) {
    for (const Span& span : spans) {
      if (const CUresult result = advise(span, static_cast<CUmem_advise>(each.what), each.location); result != CUDA_SUCCESS) {
        return result;
      }
    }
  }
  return CUDA_SUCCESS;
}

CUresult Mover::carry(MoveLane& lane, int device, const deepum_command& command, const std::vector<Span>& spans) {
  CUresult result = give(lane, device, spans, advice_before(command));
  if (result == CUDA_SUCCESS && moves(command)) {
    result =
        prefetches_.make(lane.stream, [&] { return prefetch(spans.data(), spans.size(), brings(command) ? device : kHost, lane.stream); });
  }
  return result == CUDA_SUCCESS ? give(lane, device, spans, advice_after(command)) : result;
}

}  // namespace deepum::runtime
