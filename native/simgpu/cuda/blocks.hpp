// Memory that PyTorch's caching allocator hands out within what it took from the driver, as it
// reports it (../cudart/pytorch_blocks.cpp). The driver of a real card knows nothing of it. Here it
// tells what of a discard was in use, and that what was handed out and not written yet holds
// nothing of anybody's.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine.hpp"

namespace deepum::simgpu {

namespace um_model = deepum::um_model;

class Blocks {
 public:
  // discards: as many had been asked for by now (Engine::discards).
  void handed_out(um_model::Range range, std::uint64_t discards);
  void taken_back(std::uint64_t address) { blocks_.erase(address); }
  void forget(um_model::Range range);  // its memory is the driver's again

  bool any() const { return !blocks_.empty(); }
  // Whether a block holds the address.
  bool holds(std::uint64_t address) const { return find(address) != nullptr; }
  // What um_model::Access::held_since means, for memory that one block holds; kNotKnown for any
  // other.
  std::uint64_t held_since(um_model::Range range) const;
  // Adds the block that holds the address to `unused` if nobody has used it since it was handed
  // out. From now on it is used.
  void use(std::uint64_t address, std::vector<um_model::Range>& unused);

 private:
  struct Block {
    std::uint64_t bytes;
    std::uint64_t held_since;
    bool used;
  };
  using Entry = std::map<std::uint64_t, Block>::value_type;
  const Entry* find(std::uint64_t address) const;

  std::map<std::uint64_t, Block> blocks_;  // by address
};

}  // namespace deepum::simgpu
