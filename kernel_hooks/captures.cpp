#include "captures.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "allocation_table.hpp"
#include "arguments.hpp"
#include "forkable_mutex.hpp"
#include "immortal.hpp"
#include "real_driver.hpp"

namespace deepum::hooks {
namespace {

struct Captures {
  ForkableMutex mutex;
  std::unordered_map<unsigned long long, CapturedExtents> under_way;  // by capture id
  std::unordered_map<CUgraph, std::shared_ptr<CapturedExtents>> graphs;
};
Captures& captures() noexcept { return immortal<Captures>(); }

const runtime::AllocationRecord& record_of(deepum_block_range range) noexcept {
  return runtime::allocation_table.records()[range >> DEEPUM_RANGE_SLOT_SHIFT];
}

void note(std::vector<CapturedExtent>& known, const CapturedExtent& extent) {
  const auto same = [&](const CapturedExtent& each) {
    return each.range == extent.range && each.generation == extent.generation;
  };
  if (std::none_of(known.begin(), known.end(), same)) {
    known.push_back(extent);
  }
}

}  // namespace

unsigned long long capture_id(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  Inside guard;
  if (!helpers.StreamGetCaptureInfo ||
      helpers.StreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr) !=
          CUDA_SUCCESS ||
      status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return 0;
  }
  return id;
}

void launch_captured(const StreamRef& stream, const KernelFunction& function, unsigned blocks,
                     void* const* parameters, void* const* extra) noexcept try {
  const unsigned long long id = capture_id(stream.handle);
  if (id == 0) {
    return;
  }
  const std::lock_guard lock(captures().mutex);
  CapturedExtents& extents = captures().under_way[id];
  each_argument(function, blocks, parameters, extra, [&](std::uint64_t value, std::uint32_t) {
    runtime::Extent extent;
    if (runtime::allocation_table.lookup(value, &extent) && extent.name == 0) {
      note(extents[value],
           {extent.range, record_of(extent.range).generation.load(std::memory_order_relaxed)});
    }
  });
} catch (...) {
  return;  // without memory the extents are looked up at each launch
}

void capture_became(unsigned long long id, CUgraph graph) noexcept try {
  const std::lock_guard lock(captures().mutex);
  auto captured = captures().under_way.extract(id);
  if (captured.empty() || !graph) {
    return;
  }
  // A graph may be captured into several times (cuStreamBeginCaptureToGraph).
  auto& kept = captures().graphs[graph];
  auto all = kept ? std::make_shared<CapturedExtents>(*kept) : std::make_shared<CapturedExtents>();
  for (const auto& [address, extents] : captured.mapped()) {
    for (const CapturedExtent& extent : extents) {
      note((*all)[address], extent);
    }
  }
  kept = std::move(all);
} catch (...) {
  return;
}

void graph_destroyed(CUgraph graph) noexcept {
  const std::lock_guard lock(captures().mutex);
  captures().graphs.erase(graph);
}

std::shared_ptr<const CapturedExtents> extents_of(CUgraph graph) noexcept {
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().graphs.find(graph);
  return found != captures().graphs.end() ? found->second : nullptr;
}

bool still_there(const CapturedExtent& extent) noexcept {
  const runtime::AllocationRecord& record = record_of(extent.range);
  return record.live.load(std::memory_order_relaxed) &&
         record.generation.load(std::memory_order_relaxed) == extent.generation;
}

void abandon_captures_in_child() noexcept { captures().mutex.renew(); }

}  // namespace deepum::hooks
