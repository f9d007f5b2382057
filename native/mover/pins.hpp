// The memory of the commands at hand, pinned for as long as this lives.
#pragma once

#include <optional>

#include "mover_backend.hpp"

namespace deepum::mover {

class Pins {
 public:
  explicit Pins(MoverBackend& backend) noexcept : backend_(backend) {}
  ~Pins() { backend_.release_all(); }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  std::optional<Range> add(const deepum_command& command) { return backend_.pin(command); }
  void drop_last() { backend_.release_last(); }

 private:
  MoverBackend& backend_;
};

}  // namespace deepum::mover
