#include "placement/growth_forecast.hpp"

#include <algorithm>

namespace deepum::core {

void GrowthForecast::content_died(UmBlock& block, bool died_now) {
  Growing& growing = growing_[block.key.device];
  const bool ends = died_now && !block.content.fresh;
  growing.grown -= ends ? 1 : 0;
  growing.died_away += ends && !block.residency.resident ? 1 : 0;
}

void GrowthForecast::content_begins(UmBlock& block) {
  growing_[block.key.device].grown += block.content.dead && block.residency.resident ? 1 : 0;
}

void GrowthForecast::memory_gone(Allocation& allocation) {
  Growing& growing = growing_[allocation.device];
  for (const UmBlock& block : allocation.blocks) {
    const bool ends = !block.content.fresh && !block.content.dead;
    growing.grown -= ends ? 1 : 0;
    growing.died_away += ends && !block.residency.resident ? 1 : 0;
  }
}

void GrowthForecast::launched(std::uint32_t device) {
  Growing& growing = growing_[device];
  history_.latest().growth = static_cast<std::int32_t>(growing.grown);
  history_.latest().died_away = static_cast<std::uint32_t>(growing.died_away);
  growing.grown = 0;
  growing.died_away = 0;
}

void GrowthForecast::passed(std::size_t launches) {
  for (; launches > 0; --launches) {
    const Link front = links_.empty() ? Link{} : links_.front();
    if (!links_.empty()) {
      links_.pop_front();
    }
    Growing& growing = growing_[front.device];
    growing.reserved -= front.reserved;
    if (front.counted) {
      growing.placed.pass(front.place, front.growth);
    }
    growing.most_reserved =
        now_.launch < fullest_ ? growing.most_reserved - front.reserved : growing.reserved;
  }
}

void GrowthForecast::restarted() {
  links_.clear();
  fullest_ = found_at_ = 0;
  for (Growing& growing : growing_) {
    growing.reserved = growing.most_reserved = 0;
    growing.placed.clear();
  }
}

std::int64_t GrowthForecast::growth(const PredictedLaunch& launch) const {
  return history_.holds(launch.cookie) ? std::int64_t{history_.at(launch.cookie).growth} : 0;
}

// Until that launch has passed, or an eighth of what was looked over for it.
bool GrowthForecast::knows_fullest() const {
  const bool passed = !sweeping_ && fullest_ > found_at_ && fullest_ <= now_.launch;
  return found_at_ != 0 && now_.launch - found_at_ < found_among_ / 8 && !passed;
}

// That of the next iteration, however many the chain holds: there is a little more or less in each,
// or more in each than before. Content has then risen by a good part of the device, and most of
// that dies again. Where it never rises by so much it is the launch with the most of all.
void GrowthForecast::find_fullest() {
  if (knows_fullest()) {
    return;
  }
  const bool holds = !chain_.empty() && history_.holds(chain_[0].cookie);
  const auto capacity = static_cast<std::int64_t>(
      devices_[holds ? history_.at(chain_[0].cookie).device : 0].residency.capacity());
  std::int64_t content = 0, highest = 0;
  fullest_ = found_at_ = now_.launch;
  found_among_ = chain_.size();
  LaunchIndex launch = now_.launch;
  for (const PredictedLaunch& link : chain_) {
    ++launch;
    content += growth(link);
    if (content > highest || launch == now_.launch + 1) {
      highest = content;
      fullest_ = content > 0 ? launch : fullest_;
    }
  }
  std::int64_t least = 0, most = 0;
  const auto risen = [&] {
    return most > least && (most - least) * parameters_.sweep_share >= capacity;
  };
  LaunchIndex fullest = launch = now_.launch;
  sweeping_ = true;
  content = 0;
  for (const PredictedLaunch& link : chain_) {
    content += growth(link);
    const bool dies = risen() && (most - content) * parameters_.fallen >=
                                     (most - least) * (parameters_.fallen - 1);
    if (dies && (highest - most) * parameters_.lower_share <= most - least) {
      break;
    }
    ++launch;
    if (dies || content < least) {
      least = most = content;
    } else if (content > most) {
      most = content;
      fullest = launch;
    }
  }
  if (risen() && (highest - most) * parameters_.lower_share <= most - least) {
    sweeping_ = false;
    fullest_ = fullest;
  }
  statistics_.operations += 2 * chain_.size();
}

GrowthForecast::Link& GrowthForecast::link(std::size_t ahead) {
  if (links_.size() <= ahead) {
    links_.resize(ahead + 1);
  }
  return links_[ahead];
}

void GrowthForecast::reserve(std::size_t ahead) {
  if (!history_.holds(chain_[ahead].cookie)) {
    return;
  }
  const PastLaunch& past = history_.at(chain_[ahead].cookie);
  Link& reserved = link(ahead);
  Growing& growing = growing_[past.device];
  reserved.device = past.device;
  reserved.reserved = past.needs();
  growing.reserved += reserved.reserved;
  growing.most_reserved = std::max(growing.most_reserved, growing.reserved);
}

std::uint64_t GrowthForecast::reserved_blocks(std::uint32_t device) const {
  const Growing& growing = growing_[device];
  return static_cast<std::uint64_t>(
      std::max({growing.reserved, growing.most_reserved, std::int64_t{0}}));
}

void GrowthForecast::count(std::size_t ahead) {
  const std::uint64_t place = chain_[ahead].cookie;
  if (!history_.holds(place)) {
    return;
  }
  Link& counted = link(ahead);
  if (counted.counted) {
    return;
  }
  const PastLaunch& past = history_.at(place);
  counted.device = past.device;
  counted.growth = past.needs();
  counted.place = place;
  counted.counted = true;
  growing_[past.device].placed.add(place, counted.growth);
}

std::uint64_t GrowthForecast::soon(std::uint32_t device) {
  Growing& growing = growing_[device];
  if (growing.soon_at != now_.launch) {
    growing.soon_at = now_.launch;
    growing.soon = 0;
    std::int64_t content = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(chain_.size(), parameters_.soon);
         ++i, ++statistics_.operations) {
      if (history_.holds(chain_[i].cookie) && history_.at(chain_[i].cookie).device == device) {
        content += growth(chain_[i]);
        growing.soon = std::max(growing.soon, content);
      }
    }
  }
  return static_cast<std::uint64_t>(growing.soon);
}

}  // namespace deepum::core
