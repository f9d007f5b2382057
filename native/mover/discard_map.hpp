// The discards of one device that not all of the program's streams wait for yet, by the memory that
// they drop. Discards of a device are done in the order of their ids, so that a wait for one is a
// wait for all before it. Logic only: the caller has the lock, if it needs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "lanes.hpp"

namespace deepum::mover {

class DiscardMap {
 public:
  struct Awaited {
    std::uint64_t id = 0;   // 0: nothing to wait for
    EventHandle event = 0;  // 0: the driver does not have the discard yet
  };

  // From here on whatever uses the memory waits for this discard; earlier ones of the same memory
  // lie before it. False: there are too many.
  bool propose(std::uint64_t address, std::uint64_t bytes, std::uint64_t id);
  // The event lies behind the discard; 0: the driver did not get it. False: the entry has ended
  // meanwhile.
  bool given(std::uint64_t address, std::uint64_t id, EventHandle event) noexcept;
  // The latest one that touches the memory and that not all streams wait for.
  Awaited latest(std::uint64_t address, std::uint64_t bytes) const noexcept;
  // All streams wait for it by now, and so for all before it.
  void ordered(std::uint64_t id) noexcept;
  void forget(std::uint64_t address, std::uint64_t bytes) noexcept;  // the memory ends
  void clear() noexcept { entries_.clear(); }

 private:
  struct Entry {
    std::uint64_t end;
    std::uint64_t id;
    EventHandle event;
  };
  using Entries = std::map<std::uint64_t, Entry>;  // by address, not overlapping
  Entries::const_iterator first_at(std::uint64_t address) const noexcept;

  Entries entries_;
  std::uint64_t ordered_ = 0;  // id: all streams wait for the discards up to it
};

}  // namespace deepum::mover
