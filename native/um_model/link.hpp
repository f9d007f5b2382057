// One direction of the link between the host and a device. Bulk transfers queue on it one after the
// other; what the driver moves on its own (faults, evictions, remote accesses) is serviced at once
// and takes its share of the time from them.
#pragma once

#include <algorithm>

namespace deepum::um_model {

struct Link {
  double gbps = 0;       // bytes/ns
  bool active = false;   // a bulk transfer is in progress
  double debt = 0;       // ns by which it ends later than was said
  double free_from = 0;  // no bulk transfer begins earlier
  // Meanwhile the transfer in progress has not begun: it waits for the disk.
  double idle_from = 0, idle_until = 0;

  double time(double bytes) const { return bytes / gbps; }
  void occupy(double now, double ns) {
    if (active) {
      const double beside = std::clamp(idle_until - std::max(now, idle_from), 0.0, ns);
      if (beside > 0) {
        idle_from = std::max(now, idle_from) + beside;
      }
      debt += ns - beside;
    } else {
      free_from = std::max(free_from, now) + ns;
    }
  }
};

}  // namespace deepum::um_model
