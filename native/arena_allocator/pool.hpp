// Memory for what no plan has an offset for: segments of the driver's, best fit, ranges that are
// next to each other and free are one.
//
// Requests of up to 1 MiB share segments of 2 MiB, larger ones of which a segment of their own
// would leave much unused those of several of their size. At first all others have segments of
// their own, so that those of what lives throughout are full when a plan is followed and the rest
// can be given back; and free segments are given back rather than that more is held than was ever
// in use. Where that takes too many calls of the driver (no iteration is found, say), it ends: they
// share segments.
//
// A range is handed out again on the stream that it was handed out on: it is ordered behind what
// used it.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace deepum::arena_allocator {

using Address = std::uint64_t;

// The driver's memory of a device, as the pool needs it.
class DriverMemory {
 public:
  virtual ~DriverMemory() = default;
  virtual Address obtain(std::int64_t bytes) = 0;  // 0: there is no such memory
  virtual void release(Address memory, std::int64_t bytes) = 0;
  virtual std::int64_t held_bytes() const = 0;
};

class Pool {
 public:
  explicit Pool(DriverMemory& driver) : driver_(driver) {}

  // 0: there is no memory. `in_use`: bytes handed out at most so far, this request included.
  Address take(std::int64_t bytes, const void* stream, std::int64_t in_use);
  void give_back(Address address);  // that was taken
  // All segments that nothing of is handed out go back to the driver. False: there were none.
  bool release_free();

 private:
  static constexpr std::int64_t kSmall = 1 << 20;
  static constexpr std::int64_t kSegment = 2 << 20;  // and what larger ones are multiples of
  static constexpr std::int64_t kMiddle = 16 << 20;
  static constexpr std::int64_t kUnused = 8;  // that part of a request may be unused behind it,
  static constexpr std::int64_t kUnusedOfShared = 16;  // and behind several
  static constexpr std::int64_t kMostOfShared = 16;
  static constexpr std::int64_t kMostCalls = 4096;
  static constexpr std::int64_t kSpare = 32;  // that part of what is in use may be free besides

  enum class Kind : std::uint8_t { kSmall, kMiddle, kLarge };
  struct Range {
    std::int64_t bytes;
    Address segment;
    const void* stream;
    Kind kind;
    bool is_free;
  };
  using Ranges = std::map<Address, Range>;
  struct Free {
    const void* stream;
    Kind kind;
    std::int64_t bytes;
    Address address;
    auto operator<=>(const Free&) const = default;
  };

  static std::int64_t unused_behind(std::int64_t bytes);  // in a segment
  static Kind kind_of(std::int64_t bytes);
  static std::int64_t segment_for(std::int64_t bytes, Kind kind);
  bool shares(Kind kind) const { return kind != Kind::kLarge || calls_ > kMostCalls; }
  bool is_whole(const Ranges::const_iterator& range) const;  // a segment
  Address fitting(std::int64_t bytes, const void* stream, Kind kind);
  Address hand_out(Ranges::iterator range, std::int64_t bytes);
  void keep_below(std::int64_t bytes);
  void release(Ranges::iterator range);
  static Free key(const Ranges::value_type& range) {
    return {range.second.stream, range.second.kind, range.second.bytes, range.first};
  }

  DriverMemory& driver_;
  std::map<Address, std::int64_t> segments_;
  Ranges ranges_;
  std::set<Free> free_;
  std::int64_t calls_ = 0;  // for segments of one range
};

}  // namespace deepum::arena_allocator
