// Copies on the host of what stays on the device (clean pages), where a plan says which are made.
#pragma once

#include "memory/um_block.hpp"

namespace deepum::core {

class HostCopies {
 public:
  // From the launch at hand on a plan says what has a copy on the host, or does not any longer.
  virtual void leave_to_plan(bool planned) = 0;
  // Whether such copies pay, as far as is known.
  virtual bool pay() const = 0;
  // The block's content is copied to the host, behind the launch at hand. Nothing is done where it
  // is there already, or where clean pages cannot be.
  virtual void write_back(UmBlock& block) = 0;

 protected:
  ~HostCopies() = default;
};

}  // namespace deepum::core
