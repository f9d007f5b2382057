// Writes what hosts ask of an engine into a file (work_records.h), memory by address: for `deepum
// run --record` on the simulated GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observer.hpp"
#include "work_records.h"

namespace deepum::um_model {

class WorkLog final : public Observer {
 public:
  ~WorkLog();
  bool open(const std::string& path);  // anew; false: it cannot be written, errno says why
  void close();

  void mapped(Range range, bool managed, int device) override;
  void unmapped(std::uint64_t address) override;
  void launched(Host host, Stream stream, const Kernel& kernel) override;
  void copied(Host host, Stream stream, std::span<const Range> destination,
              std::span<const Range> source, std::uint64_t bytes, int kind) override;
  void filled(Host host, Stream stream, Range destination) override;
  void prefetched(Host host, Stream stream, std::span<const Range> ranges, int location) override;
  void discarded(Host host, Stream stream, std::span<const Range> ranges, int location,
                 bool then_prefetch) override;
  void advised(Host host, std::span<const Range> ranges, Advice advice, int location) override;
  void recorded(Host host, Event event, Stream stream) override;
  void waited(Host host, Stream stream, Event event) override;
  void called(Host host, Stream stream) override;
  void spent(Host host, double ns) override;
  void synchronised(Host host, Event event) override;
  void synchronised_stream(Host host, Stream stream) override;

 private:
  deepum_work begin(deepum_work_kind kind, Host host, Stream stream = 0);
  void add(Range range, unsigned flags);
  void write(deepum_work work);
  void put(const void* bytes, std::size_t count);
  void flush();

  int file_ = -1;
  // Not stdio's: a forked child would write what it inherits once more.
  std::vector<std::uint8_t> waiting_;
  std::vector<deepum_work_access> accesses_;
};

}  // namespace deepum::um_model
