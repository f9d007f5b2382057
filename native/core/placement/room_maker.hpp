// How room is made on a device: by commands ahead of need (PreEviction), or by the driver
// (DriverEviction).
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "placement/device_memory.hpp"

namespace deepum::core {

// What a launch that is placed may take.
enum class Urgency : std::uint8_t {
  kAtHand,  // it was launched: others leave for it
  // It is predicted: others leave for it, as far as the driver's queue makes that worth it.
  kPlanned,
  kSpare,     // it is predicted, and takes only room that is not needed on the way there
  kScheduled  // a plan says when it is fetched, and what leaves for it: no room is made for it
};

// What a planner has promised.
class Promises {
 public:
  // Blocks that launches up to that one expect stay for them.
  virtual LaunchIndex promised_until() const = 0;

 protected:
  ~Promises() = default;
};

class RoomMaker {
 public:
  struct Request {
    LaunchIndex launch;  // that needs the room
    Urgency urgency;
    bool fetches;  // the block has content; it is only populated otherwise
  };

  virtual ~RoomMaker() = default;
  // Room for one more block. False: there is none. `outgoing`: the block that the driver evicts for
  // it, if it does.
  virtual bool make_room(DeviceMemory& device, const Request& request,
                         const UmBlock*& outgoing) = 0;
  // More is believed to be on the device than it holds: discards that came to nothing had their
  // space given away, or the budget became smaller. `all`: what was used just now leaves as well.
  virtual void evict_surplus(DeviceMemory&, bool /*all*/) {}
  // Blocks that are kept free.
  virtual std::uint64_t headroom(const DeviceMemory&) const { return 0; }

  // A placement begins: what it claims does not leave for it.
  std::uint64_t begin_placement() { return ++claim_; }
  std::uint64_t claim() const { return claim_; }

 private:
  std::uint64_t claim_ = 0;
};

}  // namespace deepum::core
