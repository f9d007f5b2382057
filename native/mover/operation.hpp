// A command's calls as one operation, for whoever watches the backend's calls.
#pragma once

#include <cstddef>
#include <span>

#include "mover_backend.hpp"

namespace deepum::mover {

// `commands`: how many go along in these calls, the first included.
class Operation {
 public:
  Operation(MoverBackend& backend, const deepum_command& first, std::size_t commands,
            std::span<const Range> ranges) noexcept
      : backend_(backend) {
    backend_.begin_operation(first, commands, ranges);
  }
  ~Operation() { backend_.end_operation(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  MoverBackend& backend_;
};

}  // namespace deepum::mover
