// The chain: the launches predicted to follow the latest one, and how far ahead they are placed.
//
// Predicted from the history it follows what came after the same launches before; from the tables, as in the paper, it goes from
// execution to execution by the records of the execution correlation table.
#include <algorithm>
#include <bit>

#include "engine.hpp"

namespace deepum::core {
namespace {

constexpr std::uint64_t kTrust = 2;         // launches placed ahead for each prediction in a row that was right
constexpr std::size_t kSkipped = 64;        // of the launches expected next, those among which the execution is looked for,
constexpr std::size_t kSkippedKernels = 8;  // and those among which its kernel is
constexpr std::uint32_t kKnown = 3;         // agreement from which on half of the trust remains
constexpr std::size_t kLateScan = 4096;     // blocks looked at for one that is needed late
constexpr std::int64_t kSweep = 16;         // part of a device by which content may grow where the same is swept over and over
constexpr int kAstray = 20;                 // of the latest 32 launches in the chain, those that lay elsewhere, by which it is left
constexpr std::uint32_t kInserted = 8;      // launches in a row that may be new
constexpr std::uint64_t kRecognised = 32;   // predictions in a row that are right, by which a profile is that of the program
constexpr std::int64_t kLower = 8;          // part of what content rises by, by which it may be less than in another iteration
constexpr std::int64_t kFallen = 4;         // parts of what content has risen by, of which all but one die again in an iteration

}  // namespace

void Engine::expect_nothing() {
  for (DeviceMemory& device : devices_) {
    device.expect_nothing();
  }
}

void Engine::drop_chain() {
  chain_.clear();
  claimed_ = placed_ = promised_ = reserved_ = 0;
  inserted_ = 0;
  astray_ = 0;
  match_ = {};
  looked_ = fullest_ = 0;
  for (DeviceMemory& device : devices_) {
    device.reserved = device.most_reserved = 0;
    device.growth_ahead.clear();
  }
}

void Engine::pop_link() {
  const Link& front = chain_.front();
  DeviceMemory& device = devices_[front.device];
  device.reserved -= front.reserved;
  if (front.counted) {
    device.growth_ahead.pass(front.place, front.growth);
  }
  device.most_reserved = position_ < fullest_ ? device.most_reserved - front.reserved : device.reserved;
  match_.place = front.place;
  chain_.pop_front();
  claimed_ -= claimed_ > 0 ? 1 : 0;
  placed_ -= placed_ > 0 ? 1 : 0;
  promised_ -= promised_ > 0 ? 1 : 0;
  reserved_ -= reserved_ > 0 ? 1 : 0;
}

std::size_t Engine::find_in_chain(ExecutionId id) const {
  const Execution& execution = executions_.at(id);
  const auto exact = [&](const Link& link) { return link.id == id && link.generation == execution.generation; };
  if (exact(chain_.front())) {
    return 0;
  }
  if (settings_.prediction == DEEPUM_PREDICT_TABLES) {
    return chain_.size();
  }
  // The same kernel on other PyTorch blocks: these change places now and then, while the sequence goes on as it was.
  const auto alike = [&](const Link& link) { return link.kernel == execution.kernel; };
  if (alike(chain_.front())) {
    return 0;
  }
  const auto from = chain_.begin();
  const auto near = from + static_cast<std::ptrdiff_t>(std::min(chain_.size(), kSkippedKernels));
  const auto far = from + static_cast<std::ptrdiff_t>(std::min(chain_.size(), kSkipped));
  auto found = std::find_if(from, far, exact);
  if (found == far) {
    found = std::find_if(from, near, alike);
    found = found == near ? chain_.end() : found;
  }
  return static_cast<std::size_t>(found - from);
}

void Engine::follow(ExecutionId id) {
  context_.push(id);
  if (settings_.policy != DEEPUM_POLICY_CORRELATION) {
    return;
  }
  const Recollection now = history_.recall();
  if (!chain_.empty()) {
    ++statistics_.predictions;
    const std::size_t at = find_in_chain(id);
    const Link& front = chain_.front();
    const bool right = at == 0 && front.id == id && front.generation == executions_.at(id).generation;
    if (at < chain_.size()) {
      statistics_.predictions_right += right ? 1 : 0;
      right_in_a_row_ += right ? 1 : 0;
      astray_ = astray_ << 1 | (right ? 0 : 1);
      recognise();
      inserted_ = 0;
      statistics_.operations += at;
      for (std::size_t i = 0; i <= at; ++i) {
        pop_link();
      }
      if (settings_.prediction == DEEPUM_PREDICT_TABLES || !mistaken(now, right)) {
        return;
      }
    } else if (settings_.prediction == DEEPUM_PREDICT_HISTORY && !agrees_better(now) && ++inserted_ <= kInserted) {
      return;
    } else {
      right_in_a_row_ = settings_.prediction == DEEPUM_PREDICT_HISTORY && now.agreement >= kKnown ? right_in_a_row_ / 2 : 0;
    }
    ++statistics_.chain_restarts;
    drop_chain();
    expect_nothing();
  }
  chain_context_ = context_;
  match_ = now;
}

// The program does what that of the profile did: so it will need as much memory.
void Engine::recognise() {
  if (recognised_ || right_in_a_row_ < kRecognised) {
    return;
  }
  recognised_ = true;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    devices_[i].foretold_blocks = foretold_[i];
  }
}

// Where it agrees as well, the longer way back is better: a loop inside an iteration ends, and the iteration goes on.
bool Engine::agrees_better(Recollection now) const {
  return now.agreement > match_.agreement || (now.agreement == match_.agreement && now.place < match_.place);
}

// Whether another place in the history is the better match. One that was is left only when what is launched has lain elsewhere for a
// while: tensors change places now and then wherever one looks.
bool Engine::mistaken(Recollection now, bool right) {
  if (now.place == match_.place) {
    match_.agreement = std::max(match_.agreement, now.agreement);
    return false;
  }
  return !right && (now.agreement > match_.agreement || (now.agreement > kKnown && std::popcount(astray_) >= kAstray));
}

bool Engine::predict_next(Link& link) {
  ++statistics_.operations;
  if (settings_.prediction == DEEPUM_PREDICT_TABLES) {
    chain_context_ = chain_.empty() ? context_ : chain_context_;
    const ExecutionId next = executions_.predict(chain_context_);
    if (next == kNoExecution) {
      return false;
    }
    link = {next, executions_.at(next).generation, executions_.at(next).kernel, kNowhere, 0, 0};
    chain_context_.push(next);
    return true;
  }
  // At most up to the present: one iteration, always the latest, since it goes on as the history does.
  const std::uint64_t before = chain_.empty() ? match_.place : chain_.back().place;
  const std::uint64_t place = before + 1;
  if (before == kNowhere || !history_.holds(place)) {
    return false;
  }
  const PastLaunch& past = history_.at(place);
  link = {past.id, past.generation, past.kernel, place, 0, 0};
  return true;
}

void Engine::extend_chain() {
  for (std::uint32_t i = 0; i < settings_.chain_steps && chain_.size() < settings_.prefetch_degree; ++i) {
    Link link{};
    if (!predict_next(link)) {
      return;
    }
    chain_.push_back(link);
  }
}

// Trust grows with what came true: a program whose addresses change from step to step is not made to fetch its old ones.
std::size_t Engine::trusted() const { return std::min<std::uint64_t>(chain_.size(), kTrust * right_in_a_row_); }

// Looks at what launches to come will use. Where the order is by next use they expect it, so that others go first; by last use only
// where content does not grow and shrink: what is swept over and over is needed the sooner the longer ago it was used, while on the way
// back from a forward pass it is needed the later.
void Engine::claim_ahead(std::size_t most) {
  const bool expecting = settings_.eviction_order == DEEPUM_EVICT_FURTHEST_NEXT_USE || sweeping_;
  const std::size_t until = std::min(trusted(), claimed_ + most);
  for (; claimed_ < until; ++claimed_) {
    const Link& link = chain_[claimed_];
    const Execution& execution = executions_.at(link.id);
    if (execution.generation != link.generation || execution.launches < kProven) {
      continue;
    }
    sparse_ = execution.sparse;
    for (const BlockSpan& span : locate(execution.blocks, claimed_ + 1)) {
      Allocation& allocation = slots_[span.slot];
      DeviceMemory& device = devices_[allocation.device];
      if (!device.under_pressure()) {
        continue;
      }
      statistics_.operations += span.count;
      for (std::uint32_t i = span.first; i < span.first + span.count; ++i) {
        UmBlock& block = allocation.blocks[i];
        if (block.resident && expecting && !passes_over(block) && !(block.is_kept() && device.overdue(block))) {
          device.expect(block, position_ + claimed_ + 1);
        }
      }
    }
  }
}

// The launch at which there will be the most content, a training step's end of the forward pass: what comes into being until then is
// needed after it, and goes rather than what is needed before. That of the next iteration, however many the chain holds: there is a little
// more or less in each, or more in each than before. Content has then risen by a good part of the device, and most of that dies again.
// Where it never rises by so much it is the launch with the most of all.
void Engine::find_fullest() {
  const DeviceMemory& device = devices_[chain_.empty()                         ? 0
                                        : history_.holds(chain_.front().place) ? history_.at(chain_.front().place).device
                                                                               : 0];
  const auto growth = [&](const Link& link) { return history_.holds(link.place) ? std::int64_t{history_.at(link.place).growth} : 0; };
  std::int64_t content = 0, highest = 0;
  fullest_ = looked_ = position_;
  looked_over_ = chain_.size();
  std::uint64_t position = position_;
  for (const Link& link : chain_) {
    ++position;
    content += growth(link);
    if (content > highest || position == position_ + 1) {
      highest = content;
      fullest_ = content > 0 ? position : fullest_;
    }
  }
  std::int64_t least = 0, most = 0;
  const auto risen = [&] { return most > least && (most - least) * kSweep >= static_cast<std::int64_t>(device.capacity_blocks); };
  std::uint64_t fullest = position = position_;
  sweeping_ = true;
  content = 0;
  for (const Link& link : chain_) {
    content += growth(link);
    const bool dies = risen() && (most - content) * kFallen >= (most - least) * (kFallen - 1);
    if (dies && (highest - most) * kLower <= most - least) {
      break;
    }
    ++position;
    if (dies || content < least) {
      least = most = content;
    } else if (content > most) {
      most = content;
      fullest = position;
    }
  }
  if (risen() && (highest - most) * kLower <= most - least) {
    sweeping_ = false;
    fullest_ = fullest;
  }
  statistics_.operations += 2 * chain_.size();
}

// Until that launch has passed, or an eighth of what was looked over for it.
bool Engine::knows_fullest() const {
  const bool passed = !sweeping_ && fullest_ > looked_ && fullest_ <= position_;
  return looked_ != 0 && position_ - looked_ < looked_over_ / 8 && !passed;
}

// What launches to come will need besides what exists: it has no place yet, so its space is counted, and made while the link is idle. Once
// they are launched it would be late: a forward pass, which fills memory, would be held off by the copies out.
void Engine::reserve_ahead(std::size_t most) {
  if (!knows_fullest()) {
    find_fullest();
  }
  const std::size_t until = std::min<std::size_t>(std::min(trusted(), reserved_ + most), fullest_ > position_ ? fullest_ - position_ : 0);
  for (; reserved_ < until; ++reserved_) {
    reserve(chain_[reserved_]);
  }
}

void Engine::reserve(Link& link) {
  if (!history_.holds(link.place)) {
    return;
  }
  const PastLaunch& past = history_.at(link.place);
  DeviceMemory& device = devices_[past.device];
  link.device = past.device;
  link.reserved = past.needs();
  device.reserved += link.reserved;
  device.most_reserved = std::max(device.most_reserved, device.reserved);
}

// Room for what is reserved, while the program waits.
void Engine::make_reserved_room(DeviceMemory& device, std::uint32_t ordinal) {
  if (device.reserved_blocks() == 0 || !device.under_pressure() || device.driver_evicts) {
    return;
  }
  const std::uint64_t needed = device.reserved_blocks() + headroom(device);
  while (device.free_blocks() + device.dead.size() < needed) {
    // Only what is known to be needed later: what nobody expects may be needed all the same, and would come back behind all of this.
    const std::uint64_t late = std::max(fullest_, position_);
    // Nor what ends by itself: it would be copied for nothing.
    const auto lives = [&](const UmBlock& block) { return block.next_use != Use::kDies || block.awaited <= position_; };
    UmBlock* victim = device.expected.find_beyond(late, kLateScan, lives);
    victim = victim != nullptr ? victim : device.expected_copied.find_beyond(late, kLateScan, lives);
    if (victim == nullptr) {
      const std::uint64_t known = position_ + trusted();
      const auto late_enough = [&](const UmBlock& block) {
        return block.next_use != Use::kDies && block.awaited > late && block.awaited <= known;
      };
      victim = device.copied.find(kLateScan, late_enough);
      victim = victim != nullptr ? victim : device.kept.find(kLateScan, late_enough);
      victim = victim != nullptr ? victim : device.resting.find(kLateScan, late_enough);  // what waits for the program is in time
    }
    if (victim == nullptr) {
      return;
    }
    evict(device, ordinal, *victim, late);
  }
}

}  // namespace deepum::core
