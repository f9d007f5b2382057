#include "discard_order.hpp"

#include <algorithm>

#include "contexts.hpp"
#include "discards.hpp"
#include "driver.hpp"
#include "live_session.hpp"
#include "relaxed.hpp"

namespace deepum::runtime {
namespace {

void await(const Discards::Awaited& awaited) noexcept {
  if (awaited.id == 0 || !driver().EventSynchronize) {
    return;
  }
  const Relaxed mode;
  if (current_context()) {
    driver().EventSynchronize(awaited.event);
  } else {
    const Elsewhere there(awaited.context);
    driver().EventSynchronize(awaited.event);
  }
}

// What is launched on the stream from here on comes after these discards, and so after all before
// them. Where the stream cannot be made to wait, the thread does.
void follow(const Discards::AwaitedOfLanes& all, CUstream stream) noexcept {
  for (const Discards::Awaited& awaited : all) {
    if (awaited.id != 0 && driver().StreamWaitEvent(stream, awaited.event, 0) != CUDA_SUCCESS) {
      await(awaited);
    }
  }
}

}  // namespace

void follow_discards(CUstream stream) noexcept { follow(Discards::instance().latest(), stream); }

void use_after_discards(std::uint64_t address, std::uint64_t bytes) noexcept {
  const Discards::AwaitedOfLanes all = Discards::instance().latest(address, bytes);
  for (std::size_t device = 0; device < all.size(); ++device) {
    const Discards::Awaited& awaited = all[device];
    if (awaited.id == 0) {
      continue;
    }
    Session* session = live.load(std::memory_order_acquire);
    if (session && session->markers.wait_on_all(awaited.event)) {
      Discards::instance().ordered(device, awaited.id);
    } else {
      await(awaited);  // then it is done, for whoever comes
    }
  }
}

void wait_for_discards(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::ranges::for_each(Discards::instance().latest(address, bytes), await);
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->mover().wait_for_advice(address, bytes);
  }
  Discards::instance().forget(address, bytes);
}

void before_graph(CUstream stream) noexcept { follow(Discards::instance().forbid(), stream); }

void before_value_wait() noexcept {
  Discards::instance().forbid();
  if (Session* session = live.load(std::memory_order_acquire)) {
    session->gates.end();
  }
}

// Its streams of ours end with it: whoever uses the memory from then on could wait for them no
// more.
void context_ending(CUcontext context) noexcept {
  std::ranges::for_each(Discards::instance().close_context(context), await);
  if (Session* session = live.load(std::memory_order_acquire); session && session->gates.used()) {
    session->gates.end();  // the driver waits for what lies behind them
  }
}

void context_stays(CUcontext context) noexcept { Discards::instance().reopen_context(context); }

}  // namespace deepum::runtime
