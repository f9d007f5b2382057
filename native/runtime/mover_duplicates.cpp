// Duplicates: commands that advise in stream order, besides moving or instead. In lock-step a stream of ours stands still while the
// advice is given; else this thread gives it once all that it has to follow is done, so that no stream ever waits for a thread.
#include <algorithm>

#include "driver.hpp"
#include "mover.hpp"

namespace deepum::runtime {
namespace {

using Advice = std::vector<GivenAdvice>;

// What both have is kept there, and the other copy goes (facts of the driver: docs/um-model.md).
Advice end_duplication(int kept) {
  return {{CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kept},
          {CU_MEM_ADVISE_UNSET_READ_MOSTLY, kept},
          {CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, kept}};
}

const Advice kDuplicate{{CU_MEM_ADVISE_SET_READ_MOSTLY, kHost}};

Advice before(const deepum_command& command, int device) {
  switch (command.kind) {
    case DEEPUM_COMMAND_ADVISE:
      return {{static_cast<CUmem_advise>(command.advice), command.location < 0 ? kHost : command.location}};
    case DEEPUM_COMMAND_COLLAPSE:
      return end_duplication(device);
    case DEEPUM_COMMAND_COPY_OUT:
      return kDuplicate;
    case DEEPUM_COMMAND_DROP:
      return end_duplication(kHost);
    case DEEPUM_COMMAND_EVICT:
      return command.advice != 0 ? end_duplication(kHost) : Advice{};
    default:
      return {};
  }
}

}  // namespace

bool Mover::advises_in_order(const deepum_command& command) noexcept {
  switch (command.kind) {
    case DEEPUM_COMMAND_ADVISE:
      return command.after_move != 0;
    case DEEPUM_COMMAND_EVICT:
      return command.advice != 0;
    case DEEPUM_COMMAND_COLLAPSE:
    case DEEPUM_COMMAND_COPY_OUT:
    case DEEPUM_COMMAND_DROP:
      return true;
    default:
      return false;
  }
}

// All that the lane has to wait for has been done, and all that it waits for already.
bool Mover::reached(MoveLane& lane, const Requirements& required) noexcept {
  const auto done = [](CUevent event) { return !event || !driver().EventQuery || driver().EventQuery(event) != CUDA_ERROR_NOT_READY; };
  return std::all_of(required.markers.begin(), required.markers.end(), [&](const auto& each) { return done(each.second.event); }) &&
         std::all_of(required.moves.begin(), required.moves.end(),
                     [&](const auto& each) { return done(each.first->event_after(each.second)); }) &&
         (!driver().StreamQuery || driver().StreamQuery(lane.stream()) != CUDA_ERROR_NOT_READY);
}

CUresult Mover::give(MoveLane& lane, int device, const std::vector<Span>& spans, const std::vector<GivenAdvice>& advice) {
  if (advice.empty()) {
    return CUDA_SUCCESS;
  }
  if (in_lock_step_) {
    return server_.queue(contexts_[device].load(std::memory_order_acquire), lane.stream(), spans, advice);
  }
  for (const GivenAdvice& each : advice) {
    for (const Span& span : spans) {
      if (const CUresult result = runtime::advise(span, each.what, each.location); result != CUDA_SUCCESS) {
        return result;
      }
    }
  }
  return CUDA_SUCCESS;
}

CUresult Mover::carry(MoveLane& lane, int device, const deepum_command& command, const std::vector<Span>& spans) {
  CUresult result = give(lane, device, spans, before(command, device));
  if (result != CUDA_SUCCESS || command.kind == DEEPUM_COMMAND_ADVISE || command.kind == DEEPUM_COMMAND_COLLAPSE) {
    return result;
  }
  result = prefetch(spans.data(), spans.size(), command.kind == DEEPUM_COMMAND_PREFETCH ? device : kHost, lane.stream());
  if (result == CUDA_SUCCESS && command.kind == DEEPUM_COMMAND_DROP) {
    result = give(lane, device, spans, kDuplicate);
  }
  return result;
}

}  // namespace deepum::runtime
