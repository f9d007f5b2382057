// How large the tensors at known addresses are: what whole-tensor kernels (fills, copies,
// optimizers) were seen to touch. Kernels that scatter into a table do not say how many rows it
// has; a fill of the same table came before.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace deepum::simgpu {

class Extents {
 public:
  static Extents& of_process();
  void note(std::uint64_t address, std::uint64_t bytes);
  std::uint64_t bytes_at(std::uint64_t address);  // 0: not known

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> bytes_;
};

}  // namespace deepum::simgpu
