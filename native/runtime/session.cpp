// What the session is told, and what the daemon wants to know; nothing, while there is none.
#include "session.hpp"

#include "live_session.hpp"
#include "relaxed.hpp"
#include "shim_settings.hpp"

namespace deepum::runtime {

bool has_session() noexcept { return live.load(std::memory_order_acquire) != nullptr; }

bool faults_wanted() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  if (!session || settings().faults == Faults::kOff) {
    return false;
  }
  return settings().faults == Faults::kOn || session->wants_faults();
}

bool reads_wanted() noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session && session->wants_reads();
}

void begin_progress() noexcept try {
  if (Session* session = live.load(std::memory_order_acquire)) {
    const Relaxed mode;
    session->progress.begin(session->markers);
  }
} catch (...) {  // without memory for it nothing is told of that stream
  return;
}

void tell_progress() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    const Relaxed mode;
    session->progress.tell(session->markers, session->stalls);
  }
}

std::uint64_t emit(deepum_event_header* record) noexcept {
  Session* session = live.load(std::memory_order_acquire);
  return session ? session->emit(record) : 0;
}

void handle_refused() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->handle_refused();
  }
}

void allocation_refused() noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->allocation_refused();
  }
}

void allocatable(std::uint64_t bytes) noexcept {
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->allocatable(bytes);
  }
}

}  // namespace deepum::runtime
