#include "plan.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "arena.h"
#include "guarded.hpp"

namespace deepum::arena_allocator {
namespace {

constexpr std::int64_t kAlignment = 512;  // of PyTorch's blocks
constexpr std::uint64_t kSeed = 1;

const void* main_stream(const std::vector<Request>& iteration) {
  std::map<const void*, std::int64_t> bytes;
  for (const Request& each : iteration) {
    bytes[each.stream] += each.lifetime != 0 ? each.bytes : 0;
  }
  return std::ranges::max_element(bytes, {}, [](const auto& each) { return each.second; })->first;
}

bool has_place(const Request& request, const void* stream) {
  return request.lifetime != 0 && request.stream == stream;
}

// Before which request the fewest bytes live across; the iteration goes round.
std::size_t fewest_across(const std::vector<Request>& iteration, const void* stream) {
  const std::size_t period = iteration.size();
  std::vector<std::int64_t> changes(period + 1);
  std::int64_t across = 0;  // before the first
  for (std::size_t i = 0; i < period; ++i) {
    const Request& each = iteration[i];
    if (!has_place(each, stream)) {
      continue;
    }
    const std::size_t end = i + each.lifetime;
    if (end > period) {
      across += each.bytes;
    }
    if (each.lifetime > 1) {
      changes[i + 1] += each.bytes;
      changes[end > period ? end - period : end] -= each.bytes;
    }
  }
  std::size_t best = 0;
  std::int64_t least = across;
  for (std::size_t i = 1; i < period; ++i) {
    across += changes[i];
    if (across < least) {
      least = across;
      best = i;
    }
  }
  return best;
}

struct Closing {
  void operator()(deepum_arena_problem* problem) const { deepum_arena_destroy(problem); }
  void operator()(deepum_arena_search* search) const { deepum_arena_search_destroy(search); }
};

// The lowest arena that is found; empty where memory is short.
std::vector<std::int64_t> lowest(const std::vector<deepum_arena_buffer>& buffers, double seconds,
                                 Plan& plan) {
  const std::unique_ptr<deepum_arena_problem, Closing> problem(
      deepum_arena_create(buffers.data(), buffers.size()));
  if (!problem) {
    return {};
  }
  const std::unique_ptr<deepum_arena_search, Closing> search(
      deepum_arena_search_create(problem.get(), 0, kSeed));
  if (!search) {
    return {};
  }
  plan.load = deepum_arena_load(problem.get());
  std::vector<std::int64_t> offsets(buffers.size());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  deepum_arena_found found = DEEPUM_ARENA_BETTER;
  std::int64_t bound = 0;
  while (found == DEEPUM_ARENA_BETTER) {
    const std::chrono::duration<double> left = end - std::chrono::steady_clock::now();
    found =
        deepum_arena_search_next(search.get(), left.count(), offsets.data(), &plan.height, &bound);
  }
  return found == DEEPUM_ARENA_FAILED ? std::vector<std::int64_t>{} : offsets;
}

}  // namespace

std::optional<Plan> make_plan(const std::vector<Request>& iteration, double seconds) {
  const auto began = std::chrono::steady_clock::now();
  const std::size_t period = iteration.size();
  Plan plan;
  plan.stream = main_stream(iteration);
  plan.rotated = fewest_across(iteration, plan.stream);
  plan.offsets.assign(period, -1);
  std::vector<deepum_arena_buffer> buffers;
  std::vector<std::size_t> requests;
  for (std::size_t i = 0; i < period; ++i) {
    const Request& each = iteration[(plan.rotated + i) % period];
    plan.hashes.push_back(each.hash);
    if (!has_place(each, plan.stream)) {
      plan.excluded_bytes += each.bytes;
      continue;
    }
    const bool across = i + each.lifetime > period;
    const auto begin = static_cast<std::int64_t>(across ? 0 : i);
    const auto end = static_cast<std::int64_t>(across ? period : i + each.lifetime);
    buffers.push_back({begin, end, each.bytes, kAlignment});
    requests.push_back(i);
  }
  if (buffers.empty()) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> offsets = lowest(buffers, seconds, plan);
  if (offsets.empty()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    plan.offsets[requests[i]] = offsets[i];
  }
  plan.height = (plan.height + kAlignment - 1) / kAlignment * kAlignment;
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return plan;
}

void PlanMaker::start(std::vector<Request> iteration, double seconds, bool in_background) {
  const auto job = std::make_shared<Job>();
  const auto work = [job, iteration = std::move(iteration), seconds] {
    std::optional<Plan> plan =
        guarded(std::optional<Plan>{}, [&] { return make_plan(iteration, seconds); });
    const std::lock_guard lock(job->mutex);
    job->plan = std::move(plan);
    job->done = true;
  };
  job_ = job;
  if (in_background) {
    try {
      std::thread(work).detach();
      return;
    } catch (const std::system_error&) {  // no more threads
    }
  }
  work();
}

std::optional<std::optional<Plan>> PlanMaker::finished() {
  if (!job_) {
    return std::nullopt;
  }
  const std::shared_ptr<Job> job = job_;
  const std::unique_lock lock(job->mutex, std::try_to_lock);
  if (!lock.owns_lock() || !job->done) {
    return std::nullopt;
  }
  job_.reset();
  return std::move(job->plan);
}

}  // namespace deepum::arena_allocator
