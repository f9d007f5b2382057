#include "prediction/history.hpp"

#include <algorithm>
#include <bit>

#include "memory/torch_blocks.hpp"

namespace deepum::core {
namespace {

constexpr std::size_t kMostPastLaunches = 65536;
constexpr std::size_t kPlacesEach = 4;  // entries of the index for each launch
constexpr std::uint64_t kNearExecutions = 4, kFarExecutions = 8, kNearKernels = 32;
constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15ull;  // of the polynomial

constexpr std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; --exponent) {
    result *= base;
  }
  return result;
}

}  // namespace

LaunchHistory::LaunchHistory(std::size_t most_bytes)
    : most_(std::clamp<std::size_t>(
          most_bytes / (sizeof(PastLaunch) + 2 * kPlacesEach * sizeof(Place)), 64,
          kMostPastLaunches)) {}

void LaunchHistory::grow() {
  const std::size_t wanted =
      std::bit_ceil(std::max<std::size_t>(launches_.size(), 64)) * kPlacesEach;
  if (places_.size() >= wanted) {
    return;
  }
  std::vector<Place> places(wanted);
  for (const Place& old : places_) {
    Place& place = places[old.context % wanted];
    if (old.place != kNowhere && (place.place == kNowhere || place.place < old.place)) {
      place = old;
    }
  }
  places_ = std::move(places);
}

std::array<std::uint64_t, LaunchHistory::kLevels> LaunchHistory::contexts() {
  std::array<std::uint64_t, kLevels> found{};
  std::uint64_t executions = 0;
  for (std::uint64_t back = 1; back <= kFarExecutions && back <= end_; ++back) {
    executions = TorchBlockNames::mix(executions + at(end_ - back).hash);
    if (back == 1 || back == kNearExecutions || back == kFarExecutions) {
      found[back == 1 ? 0 : back == kNearExecutions ? 2 : 3] = executions + back;
    }
  }
  kernels_ = kernels_ * kBase + at(end_ - 1).kernel;
  if (end_ > kNearKernels) {
    kernels_ -= at(end_ - 1 - kNearKernels).kernel * power(kBase, kNearKernels);
  }
  if (end_ >= kNearKernels) {
    found[1] = TorchBlockNames::mix(kernels_);
  }
  return found;
}

void LaunchHistory::append(const PastLaunch& launch) {
  if (launches_.size() < most_) {
    launches_.push_back(launch);
    grow();
  } else {
    launches_[end_ % most_] = launch;
  }
  ++end_;
  recalled_ = {};
  const std::array<std::uint64_t, kLevels> present = contexts();
  for (std::uint32_t level = 0; level < kLevels; ++level) {
    if (present[level] == 0) {
      continue;
    }
    Place& place = places_[present[level] % places_.size()];
    if (place.place != kNowhere && place.context == present[level] && holds(place.place)) {
      recalled_ = {place.place, level + 1};
    }
    place = {present[level], end_ - 1};
  }
}

}  // namespace deepum::core
