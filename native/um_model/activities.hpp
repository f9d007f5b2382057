// Collects activities (activity.h). Moves come block by block; what follows without a pause becomes
// one record.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "activity.h"

namespace deepum::um_model {

inline deepum_activity activity(deepum_activity_kind kind, int device, double start_ns,
                                double end_ns, std::uint64_t bytes, std::uint32_t count,
                                std::uint64_t resident_bytes) {
  return {static_cast<std::uint32_t>(kind),
          device,
          count,
          0,
          0,
          bytes,
          resident_bytes,
          start_ns,
          end_ns,
          0};
}

class Activities {
 public:
  void add(const deepum_activity& activity);
  // As add, for a move of one block: the record before it of this kind and device goes on, if it
  // ended just now and is not long.
  void move(const deepum_activity& activity);
  // As move, of what the driver copies beside the copy engines, one block after the other.
  void move_behind(deepum_activity activity);
  // The latest of the kind ended later than it was said.
  void ended(deepum_activity_kind kind, int device, double end_ns, std::uint64_t resident_bytes);
  std::vector<deepum_activity> take();

 private:
  deepum_activity* latest(std::uint32_t kind, int device);

  std::vector<deepum_activity> all_;
  std::unordered_map<std::uint64_t, std::size_t> latest_;  // by kind and device
};

}  // namespace deepum::um_model
