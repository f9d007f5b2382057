// What may watch the calls of an engine.
#pragma once

#include <cstdint>
#include <span>

#include "handles.hpp"
#include "kernel.hpp"

namespace deepum::um_model {

enum class Advice {
  read_mostly,
  unset_read_mostly,
  preferred_location,
  unset_preferred_location,
  accessed_by,
  unset_accessed_by
};

// Told what hosts ask of an engine, before it is done: for records of a run (work_log.hpp). What
// follows from a call is not told.
class Observer {
 public:
  virtual void mapped(Range, bool /*managed*/, int /*device*/) {}
  virtual void unmapped(std::uint64_t /*address*/) {}
  virtual void launched(Host, Stream, const Kernel&) {}
  virtual void copied(Host, Stream, std::span<const Range> /*destination*/,
                      std::span<const Range> /*source*/, std::uint64_t /*bytes*/, int /*kind*/) {}
  virtual void filled(Host, Stream, Range) {}
  virtual void prefetched(Host, Stream, std::span<const Range>, int /*location*/) {}
  virtual void discarded(Host, Stream, std::span<const Range>, int /*location*/,
                         bool /*then_prefetch*/) {}
  virtual void advised(Host, std::span<const Range>, Advice, int /*location*/) {}
  virtual void recorded(Host, Event, Stream) {}
  virtual void waited(Host, Stream, Event) {}
  virtual void called(Host, Stream) {}
  virtual void spent(Host, double /*ns*/) {}
  virtual void synchronised(Host, Event) {}
  virtual void synchronised_stream(Host, Stream) {}

 protected:
  ~Observer() = default;
};

}  // namespace deepum::um_model
