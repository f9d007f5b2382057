// A MoverBackend without a driver and without threads. It writes down what the rules have done, a
// line each, and what happens in the program or on the GPU happens when a case says so.
//
// A stream's marker is named s0@5 (stream, sequence), an event of a lane e1, e2, ... in the order
// in which they were made, a range 3+2 (first block, blocks) or 1:3+2 where its slot is not 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "mover_backend.hpp"

inline constexpr std::uint64_t kBlock = 1ull << DEEPUM_UM_BLOCK_SHIFT;

class FakeBackend final : public deepum::mover::MoverBackend {
  using Advice = deepum::AdviceList;
  using Error = deepum::mover::Error;
  using EventHandle = deepum::mover::EventHandle;
  using LaneId = deepum::mover::LaneId;
  using MarkerRef = deepum::mover::MarkerRef;
  using Range = deepum::mover::Range;

 public:
  // --- What the driver and the program answer. Cases change these as they like.
  Error error = deepum::mover::kSuccess;  // of calls that move, advise or discard
  bool deferring = true, batches = true, contexts = true, prepares = true;
  bool makes_events = true, records_events = true, waits_for_events = true;
  bool records_markers = true;
  bool discards = true, commits = true, forbidden = false;
  bool holds = true, gates_begin = true, gates_written = true, gates_wait = true;
  // So many markers are, right after a lane was made to wait for one.
  int recorded_anew = 0;
  std::uint64_t unreported = 0;   // stream ids
  std::set<std::uint32_t> ended;  // slots
  std::set<LaneId> busy;          // lanes
  // The last launch that waits at its gate, by stream.
  std::map<std::uint32_t, std::uint64_t> waiters;
  std::uint32_t epoch = 0;
  bool gated = false, suspended = false;
  Log operations;

  // --- What happens in the program and on the GPU.
  void launch(std::uint64_t sequence, std::uint32_t stream = 0) {
    streams_[stream].launched = sequence;
  }
  void mark(std::uint32_t stream = 0) {
    streams_[stream].marked.push_back(streams_[stream].launched);
  }
  void complete(const std::string& event) { completed_.insert(event); }

  Log take() { return std::exchange(log_, {}); }

  // --- MoverBackend.
  bool cover(std::uint32_t stream, std::uint64_t sequence, std::vector<MarkerRef>* found) override {
    const Stream& of = streams_[stream];
    const auto at = std::ranges::lower_bound(of.marked, sequence);
    const bool behind_last = at == of.marked.end();
    if (behind_last && of.launched > (of.marked.empty() ? 0 : of.marked.back())) {
      return false;
    }
    if (!of.marked.empty()) {
      const std::uint64_t marker = behind_last ? of.marked.back() : *at;
      found->push_back({stream, marker, kMarkers + stream * kMarkersOfStream + marker, 0, 0, 0});
    }
    return true;
  }
  bool record_marker(std::uint32_t, std::uint32_t stream) override {
    if (records_markers) {
      log("record s" + std::to_string(stream));
      mark(stream);
    }
    return records_markers;
  }
  void want_marker(std::uint32_t stream) override { log("want s" + std::to_string(stream)); }
  bool still(const MarkerRef&) override { return recorded_anew == 0 || recorded_anew-- == 0; }
  std::uint64_t unreported_streams() override { return unreported; }

  std::optional<Range> pin(const deepum_command& command) override {
    if (ended.contains(command.slot)) {
      return std::nullopt;
    }
    pinned_.push_back(command.block_count * kBlock);
    return Range{(command.slot + 1ull) << kSlotShift | command.first_block * kBlock,
                 command.block_count * kBlock};
  }
  void release_last() override { pinned_.pop_back(); }
  void release_all() override { pinned_.clear(); }

  bool has_context(std::uint32_t) override { return contexts; }
  bool prepare(LaneId) override { return prepares; }
  bool idle(LaneId lane) override { return !busy.contains(lane); }
  void synchronise(LaneId lane) override { log(name(lane) + ": synchronise"); }

  EventHandle make_event() override { return makes_events ? ++made_ : 0; }
  bool record_event(LaneId lane, EventHandle event) override {
    if (records_events) {
      log(name(lane) + ": record " + event_name(event));
    }
    return records_events;
  }
  bool wait_event(LaneId lane, EventHandle event) override {
    if (waits_for_events) {
      log(name(lane) + ": wait for " + event_name(event));
    }
    return waits_for_events;
  }
  bool completed(EventHandle event) override { return completed_.contains(event_name(event)); }

  bool defers(const deepum_command&) const override { return deferring; }
  bool has_batches() const override { return batches; }
  Error prefetch(LaneId lane, std::span<const Range> ranges, std::int32_t location) override {
    return call(lane, "prefetch " + names(ranges) + " to " + place(location), ranges);
  }
  Error advise_now(LaneId lane, std::span<const Range> ranges, const Advice& advice) override {
    return call(lane, "advise now " + names(ranges) + names(advice), ranges);
  }
  Error serve_advice(LaneId lane, std::span<const Range> ranges, const Advice& advice) override {
    return call(lane, "advise in order " + names(ranges) + names(advice), ranges);
  }
  Error discard(LaneId lane, Range range) override {
    return call(lane, "discard " + names({&range, 1}), {&range, 1});
  }
  void begin_operation(const deepum_command& first, std::size_t commands,
                       std::span<const Range> ranges) noexcept override {
    CHECK(!operating_);
    operating_ = true;
    operations.push_back(std::to_string(first.id) + " and " + std::to_string(commands - 1) +
                         " more: " + names(ranges));
  }
  void end_operation() noexcept override {
    CHECK(operating_);
    operating_ = false;
  }
  void turned_off(Error why) override { log("turned off by error " + std::to_string(why)); }

  bool can_discard() override { return discards; }
  bool discards_forbidden() override { return forbidden; }
  bool commit_discard(LaneId lane, const deepum_command& command, Range) override {
    log(name(lane) + ": " + (commits ? "commit " : "do not commit ") + std::to_string(command.id));
    return commits;
  }
  void discard_given(LaneId lane, std::uint64_t address, std::uint64_t id,
                     EventHandle event) noexcept override {
    log(name(lane) + ": " + std::to_string(id) + " of " + place_of(address) + " lies before " +
        event_name(event));
  }
  void refuse_discards(Error why) override {
    log("no more discards by error " + std::to_string(why));
    discards = false;
  }

  bool can_hold(const deepum_command&) override { return holds; }
  void hold(const deepum_command& hold, std::size_t bringing, EventHandle event) override {
    log("launch " + std::to_string(hold.cause) + " waits for " + event_name(event) + " of " +
        kNames[deepum::kBringing[bringing]]);
  }

  bool gates_used() const override { return gated; }
  bool begin_gates(std::uint32_t) override {
    log("gates begin");
    return gated = gates_begin;
  }
  void suspend_gates(bool now) override {
    if (std::exchange(suspended, now) != now) {
      log(now ? "gates suspended" : "gates resumed");
    }
  }
  void end_gates(const char*) override {
    log("gates end");
    gated = false;
  }
  void set_processed(std::uint64_t sequence) override {
    if (std::exchange(processed_, sequence) != sequence) {
      log("processed " + std::to_string(sequence));
    }
  }
  std::uint64_t last_waiter(std::uint32_t stream) override {
    return waiters.contains(stream) ? waiters[stream] : 0;
  }
  std::uint32_t gate_epoch() override { return epoch; }
  bool write_gate(std::uint32_t stream, std::uint32_t, std::uint64_t sequence) override {
    log("gate " + std::to_string(stream) + ": open to " + std::to_string(sequence));
    return gates_written;
  }
  bool gate_waits(std::uint32_t stream, EventHandle event) override {
    if (gates_wait) {
      log("gate " + std::to_string(stream) + ": wait for " + event_name(event));
    }
    return gates_wait;
  }

  void answer(const deepum_command& command, deepum_moved_status status, Error why) override {
    static constexpr std::array kStatus{"issued", "stale", "cancelled", "failed", "refused"};
    log(std::to_string(command.id) + " " + kStatus[status] +
        (why != 0 ? " with error " + std::to_string(why) : ""));
  }

 private:
  static constexpr EventHandle kMarkers = 1u << 20, kMarkersOfStream = 1u << 10;
  static constexpr int kSlotShift = 40;
  static constexpr std::array kNames{"in",   "out",      "discard", "drop",
                                     "copy", "collapse", "populate"};
  struct Stream {
    std::uint64_t launched = 0;         // sequence of the last launch
    std::vector<std::uint64_t> marked;  // sequences
  };

  void log(std::string line) { log_.push_back(std::move(line)); }
  // A call is about all that is pinned, and nothing else; and belongs to an operation.
  Error call(LaneId lane, const std::string& line, std::span<const Range> ranges) {
    std::uint64_t pinned = 0, called = 0;
    for (const std::uint64_t bytes : pinned_) {
      pinned += bytes;
    }
    for (const Range& range : ranges) {
      called += range.bytes;
    }
    CHECK(called == pinned);
    CHECK(operating_);
    log(name(lane) + ": " + line);
    return error;
  }
  static std::string name(LaneId lane) {
    const std::uint32_t device = deepum::mover::lane_device(lane);
    return kNames[deepum::mover::lane_direction(lane)] +
           (device != 0 ? " of device " + std::to_string(device) : "");
  }
  static std::string event_name(EventHandle event) {
    if (event == 0) {
      return "nothing";
    }
    if (event < kMarkers) {
      return "e" + std::to_string(event);
    }
    return "s" + std::to_string((event - kMarkers) / kMarkersOfStream) + "@" +
           std::to_string((event - kMarkers) % kMarkersOfStream);
  }
  static std::string place(std::int32_t location) {
    return location < 0 ? "the CPU" : "device " + std::to_string(location);
  }
  static std::string place_of(std::uint64_t address) {
    const std::uint64_t slot = (address >> kSlotShift) - 1;
    return (slot != 0 ? std::to_string(slot) + ":" : "") +
           std::to_string((address & ((1ull << kSlotShift) - 1)) / kBlock);
  }
  static std::string names(std::span<const Range> ranges) {
    std::string all;
    for (const Range& range : ranges) {
      all += (all.empty() ? "" : ", ") + place_of(range.address) + "+" +
             std::to_string(range.bytes / kBlock);
    }
    return all;
  }
  static std::string names(const Advice& advice) {
    static constexpr std::array kAdvice{"", "read mostly", "not read mostly", "prefer ",
                                        "prefer nothing"};
    std::string all;
    for (const deepum::Advice& each : advice) {
      all += std::string(all.empty() ? ": " : ", ") + kAdvice[each.what];
      all += each.what == DEEPUM_MEM_ADVISE_SET_PREFERRED_LOCATION ? place(each.location) : "";
    }
    return all;
  }

  Log log_;
  std::map<std::uint32_t, Stream> streams_;
  std::set<std::string> completed_;  // events, by name
  std::vector<std::uint64_t> pinned_;
  EventHandle made_ = 0;
  bool operating_ = false;
  std::uint64_t processed_ = 0;
};
