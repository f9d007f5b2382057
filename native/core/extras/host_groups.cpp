#include "extras/host_groups.hpp"

#include <algorithm>
#include <map>

#include "extras/block_runs.hpp"

namespace deepum::core {

// Visits every tensor of the device that could be tried: PyTorch's, or whole allocations that it
// does not know of.
template <typename Visit>
void HostGroups::for_each_tensor(std::uint32_t device, Visit visit) {
  for (Allocation& allocation : memory_.slots()) {
    if (!allocation.live || allocation.of_program || allocation.device != device) {
      continue;
    }
    if (!allocation.reported) {
      visit(allocation, BlockSpan{0, 0, static_cast<std::uint32_t>(allocation.blocks.size())},
            allocation.bytes, allocation.regularity, allocation.born);
    }
    for (auto& [offset, block] : allocation.active) {
      visit(allocation, allocation.whole_blocks(offset, block.bytes), block.bytes, block.regularity,
            block.born);
    }
  }
}

// The smallest group of the device that was not tried yet.
HostGroups::Group HostGroups::smallest_group(std::uint32_t device) {
  struct Size {
    std::uint64_t blocks = 0;
    bool alike = true;
  };
  std::map<std::uint64_t, Size> sizes;
  std::uint64_t away = 0;
  for_each_tensor(device, [&](const Allocation& allocation, BlockSpan span, std::uint64_t bytes,
                              const Regularity& regularity, LaunchIndex born) {
    ++statistics_.operations;
    if (bytes < parameters_.least_tensor * kBlockBytes || span.count == 0) {
      return;
    }
    const UmBlock& block = allocation.blocks[span.first];
    Size& size = sizes[bytes];
    size.blocks += span.count;
    size.alike = size.alike && now_.launch - born > 2 * now_.iteration &&
                 regularity.once_an_iteration(now_.launch, now_.iteration,
                                              settings_.parameters.regularity) &&
                 residents_.may_stay_as_group(block);
    away += block.on_host.advised ? span.count : 0;
  });
  const ResidencyBelief& residency = devices_[device].residency;
  const std::uint64_t over = residency.allocated() - residency.capacity();
  const std::uint64_t most = over - std::min(over, away);
  Group found;
  for (const auto& [bytes, size] : sizes) {
    const bool tried = std::ranges::any_of(
        tried_, [&](const Group& each) { return each.device == device && each.bytes == bytes; });
    if (size.alike && !tried && size.blocks <= most &&
        size.blocks >= over / parameters_.least_part &&
        (found.blocks == 0 || size.blocks < found.blocks)) {
      found = {device, bytes, size.blocks};
    }
  }
  return found;
}

bool HostGroups::find_group() {
  group_ = {};
  for (std::uint32_t device = 0; device < devices_.count() && group_.blocks == 0; ++device) {
    if (devices_[device].residency.exceeded()) {
      group_ = smallest_group(device);
    }
  }
  return group_.blocks != 0;
}

void HostGroups::completed(EventSequence sequence, std::uint64_t at) {
  timed_ = timed_ || at != 0;
  trial_.completed(sequence, at);
}

void HostGroups::launched() {
  if ((settings_.advice & DEEPUM_ADVISE_REMOTE) == 0 ||
      settings_.policy != DEEPUM_POLICY_CORRELATION || !timed_) {
    return;
  }
  trial_.launched(now_.launch, now_.event, now_.iteration);
  switch (trial_.turn()) {
    case RemoteTrial::Turn::kNone:
      break;
    case RemoteTrial::Turn::kPlace:
      place_group(true);
      break;
    case RemoteTrial::Turn::kCallBack:
      place_group(false);
      last_search_ = 0;
      break;
    case RemoteTrial::Turn::kAbandon:
      place_group(false);
      tried_.pop_back();
      break;
    case RemoteTrial::Turn::kKeep:
      last_search_ = 0;
      break;
  }
  const PaceTrial& pace = copy_back_.trial();
  if (now_.iteration < parameters_.least_iteration ||
      !trial_.ready(pace.over() ? parameters_.stable : parameters_.patience) || pace.under_way() ||
      (last_search_ != 0 && now_.launch - last_search_ < now_.iteration)) {
    return;
  }
  last_search_ = now_.launch;
  if (find_group()) {
    tried_.push_back(group_);
    trial_.begin(pace.pace());
  }
}

// Tensors of the group that are used as it expects go to the host, or those that did are the
// device's again.
void HostGroups::place_group(bool on_host) {
  for_each_tensor(group_.device, [&](Allocation& allocation, BlockSpan span, std::uint64_t bytes,
                                     const Regularity&, LaunchIndex) {
    if (bytes != group_.bytes) {
      return;
    }
    for_each_run(
        std::span(allocation.blocks).subspan(span.first, span.count),
        [&](UmBlock& block) { return move_block(block, on_host); },
        [&](const UmBlock& first, std::uint32_t count) {
          residents_.advise(first, count, on_host);
        });
    statistics_.operations += span.count;
  });
  residents_.note_peak();
  departures_.flush(now_.launch);
}

// False: the block stays as it is.
bool HostGroups::move_block(UmBlock& block, bool on_host) {
  if (on_host ? !residents_.may_stay_as_group(block) : !block.on_host.of_group) {
    return false;
  }
  if (on_host && block.residency.resident &&
      !devices_.of(block).driver_evicts()) {  // its space is what this is for
    departures_.collect(block, Exit::kEvict);
  } else if (on_host && block.host_copy.read_mostly) {  // that would have precedence
    copy_back_.end_duplication(block);
  }
  residents_.set_of_group(block, on_host);
  return true;
}

// A tensor that is used otherwise by now is called back by that.
void HostGroups::note_use(const BlockSpan& span, Regularity& regularity) {
  if (regularity.note(now_.launch + 1, now_.iteration, settings_.parameters.regularity) &&
      !tried_.empty()) {
    for (UmBlock& block : memory_.blocks(span)) {
      block.on_host.of_group = false;
    }
  }
}

}  // namespace deepum::core
