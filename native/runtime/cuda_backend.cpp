#include "cuda_backend.hpp"

#include "discards.hpp"
#include "driver.hpp"
#include "event_handles.hpp"
#include "message.hpp"
#include "move_calls.hpp"
#include "session.hpp"

namespace deepum::runtime {

CudaBackend::CudaBackend(MarkerTable& markers, Gates& gates, const ShimSettings& settings)
    : markers_(markers),
      gates_(gates),
      lock_step_(settings.lock_step),
      prefetches_(settings.lock_step ? Deferral::kDefers : settings.deferral),
      discards_(settings.lock_step || settings.deferral == Deferral::kDefers ? Deferral::kDefers
                                                                             : Deferral::kUnknown) {
}

std::uint32_t CudaBackend::context_destroyed(CUcontext context) noexcept {
  std::uint32_t devices = 0;
  for (std::uint32_t device = 0; device < DEEPUM_MAX_DEVICES; ++device) {
    CUcontext expected = context;
    if (contexts_[device].compare_exchange_strong(expected, nullptr)) {
      devices |= 1u << device;
    }
  }
  server_.forget(context);
  for (auto& holds : threads_holds_) {
    for (std::atomic<CUevent>& hold : holds) {
      hold.store(nullptr);
    }
  }
  return devices;
}

void CudaBackend::begin() noexcept {
  prefetches_.begin();
  discards_.begin();
}

void CudaBackend::forget_streams(std::uint32_t device) noexcept {
  for (std::uint32_t direction = 0; direction < DEEPUM_DIRECTIONS; ++direction) {
    streams_[mover::lane_id(device, direction)] = nullptr;
  }
  current_ = nullptr;
}

// --- Lanes

mover::EventHandle CudaBackend::make_event() {
  CUevent made = nullptr;
  return driver().EventCreate(&made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? to_handle(made) : 0;
}

bool CudaBackend::record_event(mover::LaneId lane, mover::EventHandle event) {
  const Gates::Call call(gates_);
  return driver().EventRecord(to_event(event), streams_[lane]) == CUDA_SUCCESS;
}

bool CudaBackend::wait_event(mover::LaneId lane, mover::EventHandle event) {
  const Gates::Call call(gates_);
  return driver().StreamWaitEvent(streams_[lane], to_event(event), 0) == CUDA_SUCCESS;
}

bool CudaBackend::completed(mover::EventHandle event) {
  const Gates::Call call(gates_);
  return !driver().EventQuery || driver().EventQuery(to_event(event)) != CUDA_ERROR_NOT_READY;
}

bool CudaBackend::use_context(CUcontext context) noexcept {
  if (!context) {
    return false;
  }
  if (current_ != context) {
    if (!driver().CtxSetCurrent || driver().CtxSetCurrent(context) != CUDA_SUCCESS) {
      return false;
    }
    current_ = context;
  }
  return true;
}

bool CudaBackend::prepare(mover::LaneId lane) {
  if (!use_context(context(mover::lane_device(lane)))) {
    return false;
  }
  CUstream& stream = streams_[lane];
  const Driver& call = driver();
  return stream ||
         (call.StreamCreate && call.StreamWaitEvent && call.EventCreate && call.EventRecord &&
          call.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS && stream);
}

bool CudaBackend::idle(mover::LaneId lane) {
  const Gates::Call call(gates_);
  return !driver().StreamQuery || driver().StreamQuery(streams_[lane]) != CUDA_ERROR_NOT_READY;
}

void CudaBackend::synchronise(mover::LaneId lane) {
  if (driver().StreamSynchronize) {
    driver().StreamSynchronize(streams_[lane]);
  }
}

// --- The program's progress and memory

bool CudaBackend::cover(std::uint32_t stream, std::uint64_t sequence,
                        std::vector<mover::MarkerRef>* found) {
  return markers_.cover(stream, sequence, [&](StreamMarkers& of, const Marker& marker) {
    found->push_back(to_ref(of, marker));
  });
}

bool CudaBackend::record_marker(std::uint32_t device, std::uint32_t stream) {
  return use_context(context(device)) && markers_.flush(stream);
}

bool CudaBackend::still(const mover::MarkerRef& marker) {
  Marker kept;
  kept.sequence = marker.sequence;
  kept.event = to_event(marker.event);
  kept.generation = marker.generation;
  kept.number = marker.number;
  return reinterpret_cast<StreamMarkers*>(marker.stream)->still(kept);
}

std::optional<mover::Range> CudaBackend::pin(const deepum_command& command) {
  Allocations::Pin pin = Allocations::instance().pin(command.slot, command.generation,
                                                     command.first_block, command.block_count);
  if (!pin) {
    return std::nullopt;
  }
  pins_.push_back(std::move(pin));
  return mover::Range{pins_.back().address, pins_.back().bytes};
}

// --- Calls

bool CudaBackend::defers(const deepum_command& command) const {
  return (command.kind == DEEPUM_COMMAND_DISCARD ? discards_ : prefetches_).deferral() ==
         Deferral::kDefers;
}

bool CudaBackend::has_batches() const { return runtime::has_batches(); }

mover::Error CudaBackend::prefetch(mover::LaneId lane, std::span<const mover::Range> ranges,
                                   std::int32_t location) {
  const CUstream stream = streams_[lane];
  // The probe lets a call that blocks come back by itself.
  const Gates::Call call(gates_, prefetches_.deferral() != Deferral::kUnknown);
  return prefetches_.make(
      stream, [&] { return runtime::prefetch(ranges.data(), ranges.size(), location, stream); });
}

mover::Error CudaBackend::advise_now(mover::LaneId /*lane*/, std::span<const mover::Range> ranges,
                                     const AdviceList& advice) {
  const Gates::Call call(gates_);
  for (const Advice& each : advice) {
    for (const mover::Range& range : ranges) {
      const int location = each.location < 0 ? kHost : each.location;
      if (const CUresult result = advise(range, static_cast<CUmem_advise>(each.what), location);
          result != CUDA_SUCCESS) {
        return result;
      }
    }
  }
  return mover::kSuccess;
}

mover::Error CudaBackend::serve_advice(mover::LaneId lane, std::span<const mover::Range> ranges,
                                       const AdviceList& advice) {
  return server_.queue(context(mover::lane_device(lane)), streams_[lane],
                       {ranges.begin(), ranges.end()}, advice);
}

mover::Error CudaBackend::discard(mover::LaneId lane, mover::Range range) {
  const CUstream stream = streams_[lane];
  const Gates::Call call(gates_, discards_.deferral() != Deferral::kUnknown);
  const bool populated = lock_step_ || gates_.wanted();
  return discards_.make(stream, [&] { return drop_content(range, populated, stream); });
}

void CudaBackend::turned_off(mover::Error error) {
  gates_.end();
  // At a program's end its context goes first: nothing worth a word.
  if (error != CUDA_ERROR_DEINITIALIZED && error != CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    say(Level::kWarning,
        "warning: mover: %u moves in a row failed (CUDA error %u); going on without prefetching",
        mover::kMostFailures, error);
  }
}

// --- Discards

bool CudaBackend::can_discard() { return runtime::can_discard() && !discards_forbidden(); }

bool CudaBackend::discards_forbidden() { return Discards::instance().forbidden(); }

// A move that comes too early costs a fault, a discard destroys data: without a marker behind all
// that was launched there is none.
bool CudaBackend::commit_discard(mover::LaneId /*lane*/, const deepum_command& command,
                                 mover::Range /*range*/) {
  return markers_.all_marked(command.stream_mask) && markers_.all_can_wait() &&
         Allocations::instance().commit_discard(pins_.back(), command, current_);
}

void CudaBackend::discard_given(mover::LaneId lane, std::uint64_t address, std::uint64_t id,
                                mover::EventHandle event) noexcept {
  Discards::instance().committed(mover::lane_device(lane), address, id, to_event(event));
}

void CudaBackend::refuse_discards(mover::Error error) {
  runtime::refuse_discards();
  say(Level::kWarning,
      "warning: mover: %u discards in a row failed (CUDA error %u); dead memory is copied from now "
      "on",
      mover::kMostFailedDiscards, error);
}

// --- Held launches and gates

bool CudaBackend::can_hold(const deepum_command& hold) {
  const auto id = static_cast<std::uint32_t>(__builtin_ctzll(hold.stream_mask));
  return markers_.is_a_threads_own(id) || markers_.stream(id, context(hold.device)) != nullptr;
}

void CudaBackend::hold(const deepum_command& hold, std::size_t bringing, mover::EventHandle event) {
  const auto id = static_cast<std::uint32_t>(__builtin_ctzll(hold.stream_mask));
  if (markers_.is_a_threads_own(id)) {
    threads_holds_[bringing][id].store(to_event(event));
  } else if (const CUstream stream = markers_.stream(id, context(hold.device));
             stream && event != 0) {
    driver().StreamWaitEvent(stream, to_event(event), 0);
  }
}

CUstream CudaBackend::gate_stream(std::uint32_t stream) noexcept {
  CUstream& writer = gate_streams_[stream];
  if (!use_context(gates_.home()) ||
      (!writer && driver().StreamCreate(&writer, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)) {
    return nullptr;
  }
  return writer;
}

bool CudaBackend::write_gate(std::uint32_t stream, std::uint32_t epoch, std::uint64_t sequence) {
  const Gates::Call call(gates_);
  const CUstream writer = gate_stream(stream);
  return writer && gates_.write(writer, stream, epoch, sequence);
}

bool CudaBackend::gate_waits(std::uint32_t stream, mover::EventHandle event) {
  const Gates::Call call(gates_);
  const CUstream writer = gate_stream(stream);
  return writer && driver().StreamWaitEvent(writer, to_event(event), 0) == CUDA_SUCCESS;
}

void CudaBackend::answer(const deepum_command& command, deepum_moved_status status,
                         mover::Error error) {
  deepum_moved_event event = moved_event(command, status, error);
  emit(&event.header);
}

}  // namespace deepum::runtime
