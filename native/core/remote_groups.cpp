// Which tensors are tried on the host (remote_trial.hpp): those of one size, which are alike, if each is used in one go an iteration and
// all of them have no more than does not fit. A key-value cache that is filled to a tenth is moved whole else, time and again; one that
// is full is brought as fast as it is read over the link, and gains nothing.
#include <algorithm>
#include <map>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kLeastIteration = 64;  // launches
constexpr std::uint64_t kStable = 3;           // iterations of that length before the first trial,
constexpr std::uint64_t kPatience = 16;        // and while it is not known yet whether clean copies pay
constexpr std::uint64_t kLeastTensor = 4;      // UM blocks: what is smaller is as well brought
constexpr std::uint64_t kLeastPart = 16;       // of what does not fit: less is not worth a trial
constexpr std::uint64_t kOneGo = 16;           // part of an iteration after which a use is another,
constexpr std::uint64_t kLongGo = 8;           // and which one go may take, and uses an iteration apart may differ by

constexpr std::uint32_t kMostOdds = 6;  // in a row, with which it is used otherwise; a launch left out makes iterations look longer

// UM blocks that only it has.
BlockSpan whole_blocks(const Allocation& allocation, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t from = allocation.first_offset + offset;
  const std::uint64_t first = (from + kBlockBytes - 1) / kBlockBytes, end = (from + bytes) / kBlockBytes;
  return {0, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end > first ? end - first : 0)};
}

}  // namespace

bool Regularity::note(std::uint64_t position, std::uint64_t iteration) {
  const std::uint64_t gap = position - used;
  const bool another = used == 0 || gap > iteration / kOneGo;
  const bool odd_now =
      used != 0 && iteration != 0 && (another ? gap < iteration - iteration / kLongGo : position - began > iteration / kLongGo);
  used = position;
  began = another ? position : began;
  odds = odd_now ? std::min(odds + 1, kMostOdds) : another ? 0 : odds;
  odd = odd_now ? position : odd;
  return odds == kMostOdds;
}

bool Regularity::once_an_iteration(std::uint64_t position, std::uint64_t iteration) const {
  return used != 0 && position - used <= iteration + iteration / kLongGo && (odd == 0 || position - odd > 2 * iteration);
}

// Calls it for every tensor of the device that could be tried: PyTorch's, or whole allocations that it does not know of.
template <typename Do>
void Engine::for_each_tensor(std::uint32_t ordinal, Do what) {
  for (Allocation& allocation : slots_) {
    if (!allocation.live || allocation.of_program || allocation.device != ordinal) {
      continue;
    }
    if (!allocation.reported) {
      what(allocation, BlockSpan{0, 0, static_cast<std::uint32_t>(allocation.blocks.size())}, allocation.bytes, allocation.regularity,
           allocation.born);
    }
    for (auto& [offset, block] : allocation.active) {
      what(allocation, whole_blocks(allocation, offset, block.bytes), block.bytes, block.regularity, block.born);
    }
  }
}

// The smallest group that was not tried yet.
bool Engine::find_group() {
  group_ = {};
  for (std::uint32_t ordinal = 0; ordinal < devices_in_use_ && group_.blocks == 0; ++ordinal) {
    const DeviceMemory& device = devices_[ordinal];
    if (!device.exceeded()) {
      continue;
    }
    struct Size {
      std::uint64_t blocks = 0;
      bool alike = true;
    };
    std::map<std::uint64_t, Size> sizes;
    std::uint64_t away = 0;
    for_each_tensor(ordinal, [&](const Allocation& allocation, BlockSpan span, std::uint64_t bytes, const Regularity& uses,
                                 std::uint64_t born) {
      ++statistics_.operations;
      if (bytes < kLeastTensor * kBlockBytes || span.count == 0) {
        return;
      }
      const UmBlock& block = allocation.blocks[span.first];
      Size& size = sizes[bytes];
      size.blocks += span.count;
      size.alike = size.alike && position_ - born > 2 * iteration_ && uses.once_an_iteration(position_, iteration_) && may_go_away(block);
      away += block.remote ? span.count : 0;
    });
    const std::uint64_t over = device.allocated_blocks - device.capacity_blocks;
    const std::uint64_t most = over - std::min(over, away);
    for (const auto& [bytes, size] : sizes) {
      const bool tried =
          std::ranges::any_of(tried_groups_, [&](const RemoteGroup& each) { return each.device == ordinal && each.bytes == bytes; });
      if (size.alike && !tried && size.blocks <= most && size.blocks >= over / kLeastPart &&
          (group_.blocks == 0 || size.blocks < group_.blocks)) {
        group_ = {ordinal, bytes, size.blocks};
      }
    }
  }
  return group_.blocks != 0;
}

void Engine::try_remote() {
  if ((settings_.advice & DEEPUM_ADVISE_REMOTE) == 0 || settings_.policy != DEEPUM_POLICY_CORRELATION || !times_are_told_) {
    return;
  }
  remote_.launched(position_, sequence_, iteration_);
  switch (remote_.turn()) {
    case RemoteTrial::Turn::kNone:
      break;
    case RemoteTrial::Turn::kPlace:
      place_group(true);
      break;
    case RemoteTrial::Turn::kCallBack:
      place_group(false);
      sought_ = 0;
      break;
    case RemoteTrial::Turn::kAbandon:
      place_group(false);
      tried_groups_.pop_back();
      break;
    case RemoteTrial::Turn::kKeep:
      sought_ = 0;
      break;
  }
  if (iteration_ < kLeastIteration || !remote_.ready(pace_.over() ? kStable : kPatience) || pace_.under_way() ||
      (sought_ != 0 && position_ - sought_ < iteration_)) {
    return;
  }
  sought_ = position_;
  if (find_group()) {
    tried_groups_.push_back(group_);
    remote_.begin(pace_.pace());
  }
}

// Tensors of the group that are used as it expects go to the host, or those that did are the device's again.
void Engine::place_group(bool away) {
  leaving_.clear();
  for_each_tensor(group_.device, [&](Allocation& allocation, BlockSpan span, std::uint64_t bytes, const Regularity&, std::uint64_t) {
    if (bytes != group_.bytes) {
      return;
    }
    std::uint32_t run = 0;
    for (std::uint32_t i = 0; i <= span.count; ++i) {  // one more, which ends the last run
      UmBlock* const block = i < span.count ? &allocation.blocks[span.first + i] : nullptr;
      if (block != nullptr && (away ? may_go_away(*block) : block->away)) {
        set_away(*block, away);
        ++run;
      } else if (run > 0) {
        advise_remote(allocation.blocks[span.first + i - run], run, away);
        run = 0;
      }
    }
    statistics_.operations += span.count;
  });
  statistics_.peak_remote_bytes = std::max(statistics_.peak_remote_bytes, statistics_.remote_bytes);
  leave_in_order(devices_[group_.device], group_.device, position_);
}

bool Engine::may_go_away(const UmBlock& block) const {
  return !block.stays_away() && !block.refused && !block.dead && !block.mapped && block.sparse_uses == 0;
}

void Engine::set_away(UmBlock& block, bool away) {
  DeviceMemory& device = devices_[slots_[block.slot].device];
  if (away && block.resident && !device.driver_evicts) {  // its space is what this is for
    device.drop(block);
    leaving_.push_back({&block, false});
  } else if (away && block.mostly) {  // that would have precedence
    end_duplication(block);
  }
  block.remote = block.away = away;
  sparse_blocks_ += away ? 1 : -1;
  statistics_.remote_bytes += away ? kBlockBytes : -kBlockBytes;
}

// The launch at hand uses that tensor. One that is used otherwise by now is called back by that.
void Engine::note_regularity(Allocation& allocation, const BlockSpan& span, Regularity& uses) {
  if (uses.note(position_ + 1, iteration_) && !tried_groups_.empty()) {
    for (UmBlock* block = &allocation.blocks[span.first]; block != &allocation.blocks[span.first] + span.count; ++block) {
      block->away = false;
    }
  }
}

}  // namespace deepum::core
