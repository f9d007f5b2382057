// Event records for a core.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core_session.hpp"

class Events {
 public:
  void device(std::uint64_t blocks) {
    deepum_device_event event{};
    event.total_bytes = event.capacity_bytes = blocks * deepum::core::kBlockBytes;
    put(event, event.header, DEEPUM_EVENT_DEVICE);
  }
  void allocate(std::uint32_t slot, std::uint64_t blocks) {
    deepum_allocate_event event{};
    event.slot = slot;
    event.generation = 1;
    event.bytes = blocks * deepum::core::kBlockBytes;
    event.name = 1000 + slot;
    put(event, event.header, DEEPUM_EVENT_ALLOCATE);
  }
  void launch(std::uint64_t hash, std::uint32_t slot, std::uint32_t first, std::uint32_t count) {
    struct Record {
      deepum_execute_event body;
      deepum_block_range range;
    } record{};
    record.body.execution_hash = hash;
    record.body.unknown_ranges = 1;
    record.range = std::uint64_t{slot} << DEEPUM_RANGE_SLOT_SHIFT |
                   std::uint64_t{first} << DEEPUM_RANGE_FIRST_SHIFT | count;
    put(record, record.body.header, DEEPUM_EVENT_EXECUTE);
  }
  void moved(std::uint64_t command, std::uint32_t status) {
    deepum_moved_event event{};
    event.command = command;
    event.status = status;
    put(event, event.header, DEEPUM_EVENT_MOVED);
  }
  void wait() {
    deepum_event_header header{};
    put(header, header, DEEPUM_EVENT_SYNCHRONISE);
  }
  std::uint64_t sequence() const { return sequence_; }
  std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }

 private:
  template <typename Record>
  void put(Record& record, deepum_event_header& header, std::uint8_t kind) {
    header.words = sizeof record / 8;
    header.kind = kind;
    header.sequence = ++sequence_;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof record);
  }

  std::uint64_t sequence_ = 0;
  std::vector<std::uint8_t> bytes_;
};
