// Work records, given to the machine.
#include <algorithm>
#include <utility>

#include "range_parts.hpp"
#include "replay.hpp"

namespace deepum::simulate {
namespace {

using um_model::Kernel;
using um_model::kProgram;
using um_model::Range;

constexpr double kMostNs = 1e18;  // thirty years
constexpr double kMostFlops = 1e30;
constexpr std::uint64_t kMostBytes = 1ull << 50;

// False for NaN.
bool between(double value, double least, double most) { return value >= least && value <= most; }

bool sound(const deepum_work& work, std::span<const deepum_work_access> accesses, int devices) {
  return between(work.ns, 0, kMostNs) && between(work.flops, 0, kMostFlops) &&
         between(work.peak_fraction, 0, 1) && work.device_bytes <= kMostBytes &&
         work.tiles <= kMostBytes && work.location >= um_model::kCpu && work.location < devices &&
         std::all_of(
             accesses.begin(), accesses.end(),
             [](const auto& access) { return access.bytes <= kMostBytes; });
}

}  // namespace

// Nothing, for memory that is not there.
Range Replay::range(const deepum_work_access& access) {
  if (access.slot == DEEPUM_WORK_BY_ADDRESS) {
    return objects_.range(access);
  }
  const Place* const place = places_.find(access.slot);
  if (place == nullptr || access.offset >= place->bytes) {
    return {0, 0};
  }
  return {place->base + access.offset, std::min(access.bytes, place->bytes - access.offset)};
}

std::vector<Range> Replay::ranges(std::span<const deepum_work_access> accesses) {
  std::vector<Range> made;
  for (const deepum_work_access& access : accesses) {
    if (const Range known = range(access); known.bytes != 0) {
      made.push_back(known);
    }
  }
  return made;
}

bool Replay::do_work(const deepum_work& work, std::span<const deepum_work_access> accesses) {
  if (!sound(work, accesses, options_.devices)) {
    return false;
  }
  const std::uint32_t device = executing_ != nullptr ? executing_->header.device : 0;
  const bool of_helper = (work.flags & DEEPUM_WORK_OF_HELPER) != 0;
  program_call();
  switch (work.kind) {
    case DEEPUM_WORK_LAUNCH:
      launch(work, accesses);
      return true;
    case DEEPUM_WORK_COPY: {
      worked_ = worked_ || !of_helper;
      const bool in = (work.flags & DEEPUM_WORK_TO_DEVICE) != 0;
      std::vector<Range> managed = ranges(accesses), other;
      std::vector<Range>& destination = in ? managed : other;
      std::vector<Range>& source = in ? other : managed;
      const um_model::Stream on = objects_.stream(work.stream, device);
      if (executing_ != nullptr && !of_helper) {
        markers_[executing_->stream].adopt(on);
      }
      engine_.copy(kProgram, on, std::move(destination), std::move(source), work.device_bytes,
                   in ? 1 : 2, {});
      return true;
    }
    case DEEPUM_WORK_HOST_COPY:
      worked_ = true;
      engine_.copy(kProgram, objects_.stream(work.stream, device), std::vector<Range>{},
                   std::vector<Range>{}, work.device_bytes, 0, {});
      return true;
    case DEEPUM_WORK_PREFETCH:
      engine_.prefetch(kProgram, objects_.stream(work.stream, device), ranges(accesses),
                       work.location);
      return true;
    case DEEPUM_WORK_DISCARD:
      engine_.discard(kProgram, objects_.stream(work.stream, device), ranges(accesses),
                      work.location, (work.flags & DEEPUM_WORK_THEN_PREFETCH) != 0);
      return true;
    case DEEPUM_WORK_ADVISE:
      if (work.event > DEEPUM_MODEL_UNSET_ACCESSED_BY) {
        return false;
      }
      engine_.advise(kProgram, ranges(accesses), static_cast<um_model::Advice>(work.event),
                     work.location);
      return true;
    case DEEPUM_WORK_CALL:
      engine_.call(kProgram, objects_.stream(work.stream, device), {});
      return true;
    case DEEPUM_WORK_RECORD:
      engine_.record(kProgram, objects_.event(work.event), objects_.stream(work.stream, device));
      return true;
    case DEEPUM_WORK_WAIT:
      engine_.wait(kProgram, objects_.stream(work.stream, device), objects_.event(work.event));
      return true;
    case DEEPUM_WORK_SYNCHRONISE_EVENT:
      engine_.synchronise(kProgram, objects_.event(work.event));
      if (!of_helper) {
        mark(DEEPUM_SIMULATION_SYNCHRONISE, now());
      }
      return true;
    case DEEPUM_WORK_SYNCHRONISE_STREAM:
      engine_.synchronise_stream(kProgram, objects_.stream(work.stream, device));
      if (!of_helper) {
        mark(DEEPUM_SIMULATION_SYNCHRONISE, now());
      }
      return true;
    case DEEPUM_WORK_SPEND:
      engine_.spend(kProgram, work.ns);
      return true;
    case DEEPUM_WORK_MAP:
      if (accesses.size() != 1 || accesses[0].bytes == 0 || work.location < 0) {
        return false;
      }
      objects_.map(accesses[0], work.location);
      return true;
    case DEEPUM_WORK_UNMAP:
      if (accesses.size() != 1) {
        return false;
      }
      objects_.unmap(accesses[0].offset);
      return true;
    default:
      return false;
  }
}

void Replay::launch(const deepum_work& work, std::span<const deepum_work_access> accesses) {
  worked_ = true;
  const um_model::Stream on =
      objects_.stream(work.stream, executing_ != nullptr ? executing_->header.device : 0);
  if (executing_ != nullptr) {
    StreamMarkers& markers = markers_[executing_->stream];
    if (!markers.stream()) {
      mover_.backend().follow_discards(on);
    }
    markers.adopt(on);
  }
  Kernel kernel;
  kernel.measured_ns = work.ns;
  kernel.flops = work.flops;
  kernel.matrix_units = (work.flags & DEEPUM_WORK_MATRIX_UNITS) != 0;
  kernel.of_graph = (work.flags & DEEPUM_WORK_OF_GRAPH) != 0;
  kernel.peak_fraction = work.peak_fraction;
  kernel.tiles = work.tiles;
  kernel.device_bytes = work.device_bytes;
  kernel.tag = traced_;
  for (const deepum_work_access& access : accesses) {
    const Range where = range(access);
    if (where.bytes == 0) {
      continue;
    }
    if ((access.flags & DEEPUM_WORK_PERHAPS) != 0) {
      kernel.perhaps_written.push_back(where);
    } else {
      kernel.accesses.push_back({where, (access.flags & DEEPUM_WORK_READ) != 0,
                                 (access.flags & DEEPUM_WORK_WRITE) != 0,
                                 (access.flags & DEEPUM_WORK_WRITTEN_FIRST) != 0,
                                 (access.flags & DEEPUM_WORK_ESTIMATED) != 0});
    }
  }
  const bool counted = (work.flags & DEEPUM_WORK_UNCOUNTED) == 0,
             ends_step = counted && (work.flags & DEEPUM_WORK_ENDS_STEP) != 0;
  if (ends_step) {
    mark(DEEPUM_SIMULATION_STEP, 0);
    deepum_simulation_mark* const made = &marks_.back();  // a deque's elements stay where they are
    kernel.effect = [this, made] { made->counters = counters(); };
  }
  Timed timed{executing_ != nullptr ? executing_->header.sequence : 0, 0, 0, 0, traced_, 0};
  const bool watched = watches();
  if (times_launches() && reached_ && executing_ != nullptr) {
    const um_model::Event ready = engine_.add_event();
    engine_.record(kProgram, ready, on);
    stalls_.push_back({executing_->stream, timed.sequence, *reached_, ready});
  }
  if (watched) {
    timed.kernel_ns = um_model::kernel_ns(machine_, kernel);
    timed.ready = engine_.add_event();
    timed.end = engine_.add_event();
    timed.reached = reached_.value_or(timed.ready);
    engine_.record(kProgram, timed.ready, on);
  }
  if (counted) {
    engine_.launch(kProgram, on, std::move(kernel));
  } else {
    copy_inside(on, kernel.accesses);
  }
  if (watched) {
    engine_.record(kProgram, timed.end, on);
    timed_.push_back(timed);
  }
  if (ends_step) {
    step_ends_.emplace_back(marks_.size() - 1, engine_.add_event());
    engine_.record(kProgram, step_ends_.back().second, on);
  }
}

// A memset, or a copy inside the device: no kernel, but as one.
void Replay::copy_inside(um_model::Stream on, std::span<const um_model::Access> accesses) {
  std::vector<Range> to, from;
  for (const um_model::Access& access : accesses) {
    (access.write ? to : from).push_back(access.range);
  }
  if (from.empty() && to.size() == 1) {
    engine_.fill(kProgram, on, to[0], {});
  } else {
    engine_.copy(kProgram, on, std::move(to), std::move(from), 0, 3, {});
  }
}

// Of a launch of which nothing is known but its ranges: it takes as long as memory lets it, reads
// and writes what it may.
void Replay::default_work(const deepum_execute_event& event) {
  const auto* const packed = reinterpret_cast<const deepum_block_range*>(&event + 1);
  std::vector<deepum_work_access> accesses;
  for (std::size_t i = 0; i < ranges_of(event); ++i) {
    const auto slot = static_cast<std::uint32_t>(packed[i] >> DEEPUM_RANGE_SLOT_SHIFT);
    const std::uint64_t first =
        packed[i] >> DEEPUM_RANGE_FIRST_SHIFT & ((1u << DEEPUM_RANGE_FIRST_BITS) - 1);
    const std::uint64_t blocks = packed[i] & ((1u << DEEPUM_RANGE_COUNT_BITS) - 1);
    const Place* const place = places_.find(slot);
    const auto where =
        place != nullptr ? places_.blocks(slot, place->generation, first, blocks) : std::nullopt;
    if (where) {
      const bool written = i < event.write_ranges, read = only_reads(event, i);
      const std::uint32_t flags = written ? DEEPUM_WORK_WRITE
                                  : read  ? DEEPUM_WORK_READ
                                          : DEEPUM_WORK_READ | DEEPUM_WORK_WRITE;
      accesses.push_back(
          {slot, flags | DEEPUM_WORK_ESTIMATED, where->address - place->base, where->bytes});
    }
  }
  deepum_work work{};
  work.kind = DEEPUM_WORK_LAUNCH;
  work.stream = kEventStreams + event.stream;
  if ((event.header.flags & DEEPUM_EXECUTE_COPY) != 0) {
    const bool to_device = event.read_ranges == 0, from_device = event.write_ranges == 0;
    if (to_device != from_device && (event.header.flags & DEEPUM_EXECUTE_MEMSET) == 0) {
      work.kind = DEEPUM_WORK_COPY;
      work.flags = to_device ? DEEPUM_WORK_TO_DEVICE : 0;
      for (const deepum_work_access& access : accesses) {
        work.device_bytes += access.bytes;
      }
    } else {
      work.flags = DEEPUM_WORK_UNCOUNTED;
    }
  }
  do_work(work, accesses);
}

}  // namespace deepum::simulate
