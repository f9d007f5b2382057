// Discards, the one kind of command that destroys data: proposed by the daemon, committed here.
#include "discards.hpp"
#include "driver.hpp"
#include "memory_watch.hpp"
#include "message.hpp"
#include "mover.hpp"

namespace deepum::runtime {
namespace {

constexpr std::uint32_t kMostFailedDiscards = 16;  // in a row, after which there are none any more

}  // namespace

// The program may use the memory again at any moment: from the commitment on, its streams wait for the event that follows here.
bool Mover::issue_discard(int device) {
  MoveLane& lane = devices_[device].lanes[DEEPUM_DIRECTION_DISCARD];
  deepum_command command = lane.queue[0].command;
  command.stream_mask |= markers_.untold();
  Requirements required;
  if (!requirements(device, DEEPUM_DIRECTION_DISCARD, command, &required)) {
    return false;
  }
  const Allocations::Pin pin = Allocations::instance().pin(command.slot, command.generation, command.first_block, command.block_count);
  if (!pin) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_STALE);
    return true;
  }
  if (!can_discard() || Discards::instance().forbidden()) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_REFUSED);
    return true;
  }
  if (use_device(device) && prepare(lane) && waits_itself(command) && !reached(lane, required)) {
    looks_again_soon_ = true;
    return false;
  }
  // A move that comes too early costs a fault, a discard destroys data: without a marker behind all that was launched there is none.
  if (!use_device(device) || !prepare(lane) || !markers_.all_marked(command.stream_mask) || !markers_.all_can_wait() ||
      !Allocations::instance().commit_discard(pin, command, current_)) {
    finish(lane, command.id, mover::SettledMoves::kNowhere);
    answer(command, DEEPUM_MOVED_CANCELLED);
    return true;
  }
  bool again = false;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  {
    struct Committed {  // without memory for what it waits for, too
      const std::size_t device;
      const std::uint64_t address, id;
      CUevent behind = nullptr;
      ~Committed() { Discards::instance().committed(device, address, id, behind); }
    } committed{static_cast<std::size_t>(device), pin.address, command.id};
    if (wait_for(lane, required, &again)) {
      result = discards_.make(lane.stream, [&] { return drop_content({pin.address, pin.bytes}, has_budget(device), lane.stream); });
    }
    if (result == CUDA_SUCCESS) {
      lane.ledger.issued(command.id, 0, false);
      committed.behind = event_after(lane, command.id);
      if (!committed.behind && driver().StreamSynchronize) {
        driver().StreamSynchronize(lane.stream);  // without an event to wait for, it has to be done before anybody asks
      }
    }
  }
  if (again) {
    return true;
  }
  count_discard(result);
  finish(lane, command.id, result == CUDA_SUCCESS ? lane_number(device, DEEPUM_DIRECTION_DISCARD) : mover::SettledMoves::kNowhere);
  if (result != CUDA_SUCCESS) {
    answer(command, can_discard() ? DEEPUM_MOVED_FAILED : DEEPUM_MOVED_REFUSED, result);
  }
  return true;
}

// Failures end the discards, not the mover: what is dead is evicted from then on.
void Mover::count_discard(CUresult error) noexcept {
  failed_discards_ = error == CUDA_SUCCESS ? 0 : failed_discards_ + 1;
  if (failed_discards_ == kMostFailedDiscards) {
    refuse_discards();
    say(Level::kWarning, "warning: mover: %u discards in a row failed (CUDA error %d); dead memory is copied from now on",
        kMostFailedDiscards, error);
  }
}

}  // namespace deepum::runtime
