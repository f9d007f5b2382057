// What a caller chooses of an engine beside its machine.
#pragma once

#include <cstdint>
#include <vector>

namespace deepum::um_model {

struct Options {
  int devices = 1;
  std::uint64_t memory_bytes = 0;  // per device; 0: the machine's
  // By device, the last for all further ones; empty: memory_bytes.
  std::vector<std::uint64_t> memory_of_device;
  bool density_prefetcher = true;
  std::uint64_t host_memory_bytes = 0;  // 0: the machine's
  // Not 0: the driver now and then evicts a random block on its own (for tests of belief).
  std::uint64_t random_eviction_seed = 0;
};

}  // namespace deepum::um_model
