#include "work_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace deepum::um_model {
namespace {

constexpr std::size_t kFlushBytes = 1u << 20;

constexpr std::uint16_t when(bool true_now, std::uint32_t flag) {
  return static_cast<std::uint16_t>(true_now ? flag : 0);
}

}  // namespace

WorkLog::~WorkLog() { close(); }

bool WorkLog::open(const std::string& path) {
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) {
    return false;
  }
  deepum_work_header header{};
  std::memcpy(header.magic, "DEEPUMWK", sizeof header.magic);
  header.version = DEEPUM_WORK_VERSION;
  put(&header, sizeof header);
  return true;
}

void WorkLog::close() {
  flush();
  if (file_ >= 0) {
    ::close(file_);
    file_ = -1;
  }
}

// A disk that is full loses the rest: the reader sees a record cut off.
void WorkLog::flush() {
  for (std::size_t at = 0; at < waiting_.size() && file_ >= 0;) {
    const ssize_t written = ::write(file_, waiting_.data() + at, waiting_.size() - at);
    if (written > 0) {
      at += static_cast<std::size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      ::close(file_);
      file_ = -1;
    }
  }
  waiting_.clear();
}

void WorkLog::put(const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::uint8_t*>(bytes);
  waiting_.insert(waiting_.end(), from, from + count);
}

deepum_work WorkLog::begin(deepum_work_kind kind, Host host, Stream stream) {
  deepum_work work{};
  work.kind = static_cast<std::uint16_t>(kind);
  work.flags = when(host != kProgram, DEEPUM_WORK_OF_HELPER);
  work.stream = stream;
  accesses_.clear();
  return work;
}

void WorkLog::add(Range range, unsigned flags) {
  accesses_.push_back({DEEPUM_WORK_BY_ADDRESS, flags, range.address, range.bytes});
}

void WorkLog::write(deepum_work work) {
  if (file_ < 0) {
    return;
  }
  work.accesses = static_cast<std::uint32_t>(accesses_.size());
  work.words =
      static_cast<std::uint32_t>((sizeof work + accesses_.size() * sizeof(deepum_work_access)) / 8);
  put(&work, sizeof work);
  put(accesses_.data(), accesses_.size() * sizeof(deepum_work_access));
  if (waiting_.size() >= kFlushBytes) {
    flush();
  }
}

void WorkLog::mapped(Range range, bool managed, int device) {
  deepum_work work = begin(DEEPUM_WORK_MAP, kProgram);
  work.flags |= when(managed, DEEPUM_WORK_MANAGED);
  work.location = device;
  add(range, 0);
  write(work);
}

void WorkLog::unmapped(std::uint64_t address) {
  const deepum_work work = begin(DEEPUM_WORK_UNMAP, kProgram);
  add({address, 0}, 0);
  write(work);
}

void WorkLog::launched(Host host, Stream stream, const Kernel& kernel) {
  deepum_work work = begin(DEEPUM_WORK_LAUNCH, host, stream);
  work.flags |= when(kernel.matrix_units, DEEPUM_WORK_MATRIX_UNITS) |
                when(kernel.of_graph, DEEPUM_WORK_OF_GRAPH);
  work.ns = kernel.measured_ns;
  work.flops = kernel.flops;
  work.peak_fraction = kernel.peak_fraction;
  work.tiles = kernel.tiles;
  work.device_bytes = kernel.device_bytes;
  for (const Access& access : kernel.accesses) {
    add(access.range, when(access.read, DEEPUM_WORK_READ) | when(access.write, DEEPUM_WORK_WRITE) |
                          when(access.written_first, DEEPUM_WORK_WRITTEN_FIRST) |
                          when(access.estimated, DEEPUM_WORK_ESTIMATED));
  }
  for (const Range& range : kernel.perhaps_written) {
    add(range, DEEPUM_WORK_PERHAPS);
  }
  write(work);
}

void WorkLog::copied(Host host, Stream stream, std::span<const Range> destination,
                     std::span<const Range> source, std::uint64_t bytes, int kind) {
  deepum_work work = begin(kind == 0   ? DEEPUM_WORK_HOST_COPY
                           : kind == 3 ? DEEPUM_WORK_LAUNCH
                                       : DEEPUM_WORK_COPY,
                           host, stream);
  work.flags |= when(kind == 1, DEEPUM_WORK_TO_DEVICE) | when(kind == 3, DEEPUM_WORK_UNCOUNTED);
  work.device_bytes = kind == 3 ? 0 : bytes;
  if (kind == 2 || kind == 3) {
    for (const Range& range : source) {
      add(range, DEEPUM_WORK_READ);
    }
  }
  if (kind == 1 || kind == 3) {
    for (const Range& range : destination) {
      add(range, DEEPUM_WORK_WRITE);
    }
  }
  write(work);
}

void WorkLog::filled(Host host, Stream stream, Range destination) {
  deepum_work work = begin(DEEPUM_WORK_LAUNCH, host, stream);
  work.flags |= DEEPUM_WORK_UNCOUNTED;
  add(destination, DEEPUM_WORK_WRITE);
  write(work);
}

void WorkLog::prefetched(Host host, Stream stream, std::span<const Range> ranges, int location) {
  deepum_work work = begin(DEEPUM_WORK_PREFETCH, host, stream);
  work.location = location;
  for (const Range& range : ranges) {
    add(range, 0);
  }
  write(work);
}

void WorkLog::discarded(Host host, Stream stream, std::span<const Range> ranges, int location,
                        bool then_prefetch) {
  deepum_work work = begin(DEEPUM_WORK_DISCARD, host, stream);
  work.location = location;
  work.flags |= when(then_prefetch, DEEPUM_WORK_THEN_PREFETCH);
  for (const Range& range : ranges) {
    add(range, 0);
  }
  write(work);
}

void WorkLog::advised(Host host, std::span<const Range> ranges, Advice advice, int location) {
  deepum_work work = begin(DEEPUM_WORK_ADVISE, host);
  work.event = static_cast<std::uint32_t>(advice);
  work.location = location;
  for (const Range& range : ranges) {
    add(range, 0);
  }
  write(work);
}

void WorkLog::recorded(Host host, Event event, Stream stream) {
  deepum_work work = begin(DEEPUM_WORK_RECORD, host, stream);
  work.event = event;
  write(work);
}

void WorkLog::waited(Host host, Stream stream, Event event) {
  deepum_work work = begin(DEEPUM_WORK_WAIT, host, stream);
  work.event = event;
  write(work);
}

void WorkLog::called(Host host, Stream stream) { write(begin(DEEPUM_WORK_CALL, host, stream)); }

void WorkLog::spent(Host host, double ns) {
  deepum_work work = begin(DEEPUM_WORK_SPEND, host);
  work.ns = ns;
  write(work);
}

void WorkLog::synchronised(Host host, Event event) {
  deepum_work work = begin(DEEPUM_WORK_SYNCHRONISE_EVENT, host);
  work.event = event;
  write(work);
}

void WorkLog::synchronised_stream(Host host, Stream stream) {
  write(begin(DEEPUM_WORK_SYNCHRONISE_STREAM, host, stream));
}

}  // namespace deepum::um_model
