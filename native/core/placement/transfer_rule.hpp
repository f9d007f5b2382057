// How a block comes and goes: the seam for invalidation, clean copies, recomputation, and whatever
// else is not a plain transfer.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/um_block.hpp"

namespace deepum::core {

enum class Entry : std::uint8_t {
  kPrefetch,  // its content is copied to the device
  kPopulate,  // it has none
  kRecompute  // the program computes it again
};

enum class Exit : std::uint8_t {
  kEvict,     // its content is copied to the host
  kDrop,      // the host has the same content, so that nothing is copied
  kDiscard,   // its content is not needed, and is lost
  kRecompute  // its content is lost, and the program can compute it again
};

class TransferRule {
 public:
  // The block is about to be brought for that use; it is not resident yet.
  virtual void before_entry(UmBlock&, const SpanUse&) {}
  // How the block, which is not resident, comes; nothing: this rule does not say.
  virtual std::optional<Entry> entry(const UmBlock&) const { return std::nullopt; }
  // How the block, which is resident, leaves; nothing: this rule does not say.
  virtual std::optional<Exit> exit(const UmBlock&) const { return std::nullopt; }
  // It leaves in that way; the command was given.
  virtual void after_exit(UmBlock&, Exit) {}
  // The program's side never lets blocks leave in that way.
  virtual void exit_refused(Exit) {}

 protected:
  ~TransferRule() = default;
};

}  // namespace deepum::core
