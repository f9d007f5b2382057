#include "recorder.hpp"

#include <algorithm>
#include <cstdlib>

namespace deepum::arena_allocator {

std::uint64_t Recorder::requested(std::int64_t bytes, const void* stream) {
  const std::uint64_t hash = request_hash(bytes, stream);
  requests_.append({hash, hash});
  finder_.launched();
  made_.push_back({bytes, stream, 0, live_bytes_});
  if (made_.size() > core::RecentLaunches::kMost) {
    made_.pop_front();
  }
  live_bytes_ += bytes;
  return count() - 1;
}

void Recorder::freed(std::uint64_t number, std::int64_t bytes) {
  live_bytes_ -= bytes;
  if (number >= first()) {
    made_[number - first()].end = count();
  }
}

// As much is in use as a period ago, and was half a period ago: these are not layers of something,
// which add to it or take from it.
bool Recorder::is_steady(std::uint64_t period) const {
  const std::uint64_t now = count() - 1;
  std::int64_t least = made(now).live_bytes;
  std::int64_t most = least;
  for (std::uint64_t i = now - period; i <= now; ++i) {
    least = std::min(least, made(i).live_bytes);
    most = std::max(most, made(i).live_bytes + made(i).bytes);
  }
  const auto alike = [&](std::uint64_t a, std::uint64_t b) {
    return std::abs(made(a).live_bytes - made(b).live_bytes) <= (most - least) / kSteady;
  };
  return alike(now, now - period) && alike(now - period / 2, now - period / 2 - period);
}

std::optional<std::vector<Request>> Recorder::iteration() const {
  const std::uint64_t period = finder_.distance();
  if (period == 0 || finder_.exact() < std::max(period, kLeast) || 2 * period > made_.size() ||
      !is_steady(period)) {
    return std::nullopt;
  }
  std::vector<Request> found;
  found.reserve(period);
  const auto lifetime = [&](std::uint64_t number) -> std::uint64_t {
    const std::uint64_t end = made(number).end;
    return end != 0 && end - number <= period ? end - number : 0;
  };
  for (std::uint64_t i = count() - period; i < count(); ++i) {
    // The later one may live as yet; where both are known, the longer one is planned.
    const std::uint64_t before = lifetime(i - period);
    const std::uint64_t last = made(i).end != 0 ? lifetime(i) : before;
    found.push_back({requests_.at(i).hash, made(i).bytes,
                     before == 0 || last == 0 ? 0 : std::max(before, last), made(i).stream});
  }
  return found;
}

}  // namespace deepum::arena_allocator
