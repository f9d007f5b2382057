// How a block comes and goes: the seam for invalidation, clean copies, and whatever
// else is not a plain transfer.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/um_block.hpp"

namespace deepum::core {

enum class Exit : std::uint8_t {
  kEvict,   // its content is copied to the host
  kDrop,    // the host has the same content, so that nothing is copied
  kDiscard  // its content is not needed, and is lost
};

class TransferRule {
 public:
  // The block is about to be brought for that use; it is not resident yet.
  virtual void before_entry(UmBlock&, const SpanUse&) {}
  // How the block, which is resident, leaves; nothing: this rule does not say.
  virtual std::optional<Exit> exit(const UmBlock&) const { return std::nullopt; }
  // It leaves in that way; the command was given.
  virtual void after_exit(UmBlock&, Exit) {}

 protected:
  ~TransferRule() = default;
};

}  // namespace deepum::core
