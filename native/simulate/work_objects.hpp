// What work records name, as the machine has it: streams and events by number, device memory by the
// address that it had.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "um_model/engine.hpp"
#include "um_model/work_records.h"

namespace deepum::simulate {

class WorkObjects {
 public:
  explicit WorkObjects(um_model::Engine& engine) : engine_(engine) {}

  // Made when they are first named.
  um_model::Stream stream(std::uint32_t number, std::uint32_t device);
  um_model::Event event(std::uint32_t number);
  const std::vector<um_model::Stream>& streams() const { return made_; }

  void map(const deepum_work_access& access, int device);
  void unmap(std::uint64_t address);
  // Of device memory; nothing, for memory that is not there.
  um_model::Range range(const deepum_work_access& access) const;

 private:
  um_model::Engine& engine_;
  std::unordered_map<std::uint32_t, um_model::Stream> streams_;
  std::unordered_map<std::uint32_t, um_model::Event> events_;
  std::vector<um_model::Stream> made_;
  std::map<std::uint64_t, um_model::Range> memory_;  // its place, by the address that it had
  std::uint64_t next_ = 1ull << 52;
};

}  // namespace deepum::simulate
