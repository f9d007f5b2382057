"""Mutations: each takes one edge or check out of the invalidation protocol, or out of the order of
moves that it rests on.

With any of them the random programs must fail (run_mutations), or the test that it names. Those
that nothing can notice stay in the list with the reason why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mutation:
    """`old` occurs once in the file. removes: what is missing then. survives: why nothing can tell;
    empty: something must fail.

    also: other mutations that are made together with this one, where two checks stand behind each
    other. noticed_by: the test that must fail, where the behaviour is out of the random programs'
    reach; empty: the random programs.
    """

    name: str
    file: str
    old: str
    new: str
    removes: str
    survives: str = ""
    also: tuple[Mutation, ...] = ()
    noticed_by: str = ""

    def edits(self) -> tuple[Mutation, ...]:
        """All that is made together, this one first."""
        return (self, *(edit for other in self.also for edit in other.edits()))


_CORE = "native/core/"
_MOVER = "native/mover/"
_RUNTIME = "native/runtime/"
_HOOKS = "kernel_hooks/"
_LANES = "tests/runtime/test_lane_discards.py::"
_MOVES = "tests/runtime/test_moves.py::"
_GATES = "tests/runtime/test_gates.py::"

# ---- checks that stand behind others
_BEHIND = Mutation(
    "commit-without-check-behind",
    _RUNTIME + "allocation_blocks.cpp",
    (
        "  if (block != book().blocks.end() && block->first < pin.address + pin.bytes) {\n    "
        "return false;\n  }\n"
    ),
    "",
    "that no active block begins in the memory of a discard",
)
_BEFORE = Mutation(
    "commit-without-check-before",
    _RUNTIME + "allocation_blocks.cpp",
    (
        "  if (block != book().blocks.begin() &&\n"
        "      std::prev(block)->first + std::prev(block)->second > pin.address) {\n"
        "    return false;\n"
        "  }\n"
    ),
    "",
    "that no active block reaches into the memory of a discard",
)
_SINCE = Mutation(
    "handed-out-since",
    _RUNTIME + "allocation_blocks.cpp",
    "  if (table.handed_out(pin.address, pin.bytes) > command.cause) {\n    return false;\n  }\n",
    "",
    (
        "that memory which was handed out after the decision is not dropped, though it was taken "
        "back again"
    ),
)
_OWN = Mutation(
    "commit-own-memory",
    _RUNTIME + "allocation_blocks.cpp",
    "record->of_program ||",
    "",
    "that the program's own managed memory is not committed",
)
_WITHOUT_BLOCKS = Mutation(
    "commit-without-blocks",
    _RUNTIME + "allocation_blocks.cpp",
    " ||\n      !record->has_blocks.load(std::memory_order_relaxed)) {",
    ") {",
    "that only memory of which PyTorch reports blocks is committed",
)
_GRAPH_IN_MOVER = Mutation(
    "graph-rule-of-the-mover",
    _RUNTIME + "discard_order.cpp",
    "follow(Discards::instance().forbid(), stream);",
    "follow(Discards::instance().latest(), stream);",
    "that nothing is committed after a graph's launch",
)
_THREAD_WAITS = Mutation(
    "thread-does-not-wait",
    _RUNTIME + "discard_order.cpp",
    "      await(awaited);  // then it is done, for whoever comes\n",
    "",
    "that the thread waits where a stream cannot be made to wait",
)
_SINCE_MARK = Mutation(
    "marker-claims-in-flight-behind",
    _RUNTIME + "stream_markers.cpp",
    (
        "  unmarked_.store(in_flight_ || emitted_ > reach ? reach + 1 : 0, "
        "std::memory_order_relaxed);\n  Marker& oldest"
    ),
    "  unmarked_.store(0, std::memory_order_relaxed);\n  Marker& oldest",
    "that launches in flight are without a marker still",
)
_FEW_ENTRIES = Mutation(
    "few-entries",
    _MOVER + "discard_map.cpp",
    "constexpr std::size_t kMostEntries = 1u << 16;",
    "constexpr std::size_t kMostEntries = 8;",
    "that a lane has room for its discards",
)
MUTATIONS = (
    # ---- what is proposed (docs/core-reference.md, Dead blocks)
    Mutation(
        "dies-in-part",
        _CORE + "memory/address_space.cpp",
        (
            "const std::uint64_t first = std::max(blocks_up(from + origin), (offset + origin) / "
            "kBlockBytes);"
        ),
        "const std::uint64_t first = (offset + origin) / kBlockBytes;",
        "that the head of a dead UM block is inactive, and the mover's look at it",
        also=(_BEFORE,),
    ),
    Mutation(
        "dies-in-part-behind",
        _CORE + "memory/address_space.cpp",
        "std::min((to + origin) / kBlockBytes, blocks_up(offset + bytes + origin));",
        "blocks_up(offset + bytes + origin);",
        "that the end of a dead UM block is inactive, and the mover's look at it",
        also=(_BEHIND,),
    ),
    Mutation(
        "discard-not-after-death",
        _CORE + "placement/departures.cpp",
        "std::max(block.content.died, block.moves.last_use), used_streams_,",
        "block.moves.last_use, 1ull << 0,",
        (
            "that a discard waits for all that was launched, on all streams, when the block was "
            "taken back"
        ),
    ),
    Mutation(
        "discard-waits-for-nothing",
        _CORE + "placement/departures.cpp",
        "std::max(block.content.died, block.moves.last_use), used_streams_,",
        "0, 0,",
        "that a discard waits for launches",
    ),
    Mutation(
        "discard-not-after-moves",
        _CORE + "placement/departures.cpp",
        "                  std::max(block.moves.in, block.moves.out)});",
        "                  0});",
        "that a discard waits for the block's moves",
        (
            "order for speed: a discard that overtakes a move of its block drops what nobody may "
            "read either way"
        ),
    ),
    Mutation(
        "mismatch-check",
        _CORE + "extras/invalidation.cpp",
        " && statistics_.block_mismatches == 0 &&",
        " &&",
        "that nothing is proposed when the allocator's totals disagree",
    ),
    Mutation(
        "space-not-after-discard",
        _CORE + "placement/placer.cpp",
        (
            "  commands_.fence(device.ordinal, kind,\n                  "
            "std::max(block.moves.discard, space.discarded ? space.move : 0));\n"
        ),
        "",
        "that a prefetch waits for the discard of the block, or of the space that it takes",
        "order for speed: a prefetch that comes before its space is free makes the driver evict",
    ),
    Mutation(
        "eviction-not-after-use",
        _CORE + "placement/departures.cpp",
        "commands_.move(DEEPUM_COMMAND_EVICT, block, {last_use, block.moves.streams, after},",
        "commands_.move(DEEPUM_COMMAND_EVICT, block, {0, 0, after},",
        "that an eviction waits for its victim's last use",
        "order for speed: a block evicted too early is faulted in again",
    ),
    Mutation(
        "own-memory",
        _CORE + "extras/invalidation.cpp",
        " &&\n         !block.key.of_program &&",
        " &&",
        "that the program's own managed memory is neither proposed nor committed",
        also=(_OWN,),
    ),
    Mutation(
        "graph-rule",
        _CORE + "extras/invalidation.cpp",
        " &&\n         !graphs_ &&",
        " &&",
        "that nothing is proposed nor committed after a graph's launch",
        also=(_GRAPH_IN_MOVER,),
    ),
    Mutation(
        "stays-dead",
        _CORE + "memory/address_space.cpp",
        "      block.content.dead = false;\n",
        "",
        (
            "that a block handed out again is alive for the core, and that the mover looks at "
            "what is active"
        ),
        also=(_BEFORE, _BEHIND),
    ),
    Mutation(
        "stays-dead-in-part",
        _CORE + "memory/address_space.cpp",
        "const std::uint64_t end = blocks_up(offset + bytes + allocation.first_offset);",
        "const std::uint64_t end = (offset + bytes + allocation.first_offset) / kBlockBytes;",
        (
            "that the last UM block of a block handed out again is alive for the core, and that "
            "the mover looks at what is active"
        ),
        also=(_BEFORE, _BEHIND),
    ),
    Mutation(
        "first-offset",
        _CORE + "memory/address_space.cpp",
        "  allocation.first_offset = event.first_offset % kBlockBytes;",
        "  allocation.first_offset = 0;",
        (
            "that an allocation need not begin at a UM block, for the core, and that the mover "
            "looks at what is active"
        ),
        also=(_BEFORE, _BEHIND),
    ),
    # ---- what is committed (docs/runtime.md, "Discards")
    _SINCE,
    replace(_BEHIND, also=(_SINCE,)),
    replace(_BEFORE, also=(_SINCE,)),
    Mutation(
        "generation",
        _RUNTIME + "allocations.cpp",
        "record.live.load() && record.generation.load() == generation",
        "record.live.load()",
        "that a command is for the allocation that it was made for, and for PyTorch's memory",
        also=(_WITHOUT_BLOCKS,),
    ),
    Mutation(
        "no-stream-can-wait",
        _RUNTIME + "cuda_backend.cpp",
        " && markers_.all_can_wait()",
        "",
        (
            "that nothing is discarded while a stream could not wait for it, and that the thread "
            "waits instead"
        ),
        also=(_THREAD_WAITS,),
    ),
    Mutation(
        "commit-untold",
        _RUNTIME + "allocation_blocks.cpp",
        (
            "  return Discards::instance().propose(command.device, context, pin.address, "
            "pin.bytes, command.id);"
        ),
        "  return context != nullptr;",
        "that whoever uses the memory again finds the discard",
    ),
    Mutation(
        "pin-from-the-base",
        _RUNTIME + "allocations.cpp",
        "const std::uint64_t origin = base & ~(kUmBlockBytes - 1);",
        "const std::uint64_t origin = base;",
        "that the blocks of a command are UM blocks, wherever the allocation begins",
    ),
    Mutation(
        "pin-too-long",
        _RUNTIME + "allocations.cpp",
        "(std::uint64_t{first_block} + block_count) * kUmBlockBytes",
        "(std::uint64_t{first_block} + block_count + 1) * kUmBlockBytes",
        "that a command is for its blocks and no more",
    ),
    Mutation(
        "inactive-of-another-size",
        _RUNTIME + "allocation_blocks.cpp",
        "block == book().blocks.end() || block->second != bytes",
        "block == book().blocks.end()",
        "that a report of another size than the block's is not believed",
        noticed_by=_LANES + "test_a_block_that_is_taken_back_in_another_size_is_not_dropped",
    ),
    Mutation(
        "unmarked",
        _RUNTIME + "cuda_backend.cpp",
        "markers_.all_marked(command.stream_mask) && ",
        "",
        "that nothing is discarded behind launches that no marker could be recorded behind",
        noticed_by=_LANES + "test_without_markers_nothing_is_dropped",
    ),
    Mutation(
        "untold-launch",
        _MOVER + "discard_rules.cpp",
        "  command.stream_mask |= backend_.unreported_streams();\n",
        "",
        "that a discard waits for launches whose events were lost",
        noticed_by=_LANES + "test_a_launch_that_the_ring_had_no_room_for_is_waited_for",
    ),
    Mutation(
        "marker-recorded-anew",
        _MOVER + "wait_rules.cpp",
        "    if (!backend_.still(marker)) {\n      return Wait::kAgain;\n    }\n",
        "",
        "that a marker which went on while the lane waited for it is noticed",
        (
            "not shown: a thread would have to record 512 markers between two calls of the mover, "
            "on another stream that has the id by then"
        ),
    ),
    Mutation(
        "moves-not-awaited",
        _MOVER + "wait_rules.cpp",
        "      found->moves.emplace_back(&other, id);",
        "",
        "that a move waits for the move before it",
        (
            "order for speed: unified memory is coherent, and who uses memory again waits for its "
            "discard, whatever else moves"
        ),
    ),
    Mutation(
        "markers-not-awaited",
        _MOVER + "wait_rules.cpp",
        "      found->markers.push_back(marker);",
        "",
        "that moves and discards wait for the launches before them",
    ),
    Mutation(
        "marker-claims-in-flight",
        _RUNTIME + "stream_markers.cpp",
        "  const std::uint64_t reach = std::min(answered(), limit);",
        "  const std::uint64_t reach = emitted_;",
        "that a marker claims no launch that the driver does not have yet",
        also=(_SINCE_MARK,),
    ),
    Mutation(
        "shared-marker-claims-in-flight",
        _RUNTIME + "marker_table.cpp",
        "shares ? std::min(limit, streams_[kShared].settled_up_to()) : limit",
        "limit",
        "the same for streams that share an id",
        noticed_by=_MOVES
        + (
            "test_no_marker_covers_what_another_thread_is_about_to_launch_on_a_stream_that_shares_its_id"
        ),
    ),
    Mutation(
        "marker-before-is-enough",
        _MOVER + "marker_search.hpp",
        "kept(at).sequence >= sequence && kept(at).first > sequence",
        "kept(at).sequence >= sequence",
        "that an earlier marker is enough only where no launch lies between",
    ),
    Mutation(
        "lane-waits-once",
        _MOVER + "lane_ledger.cpp",
        (
            "found->second.incarnation > marker.incarnation ||\n"
            "         found->second.sequence >= marker.sequence"
        ),
        "found->second.incarnation >= marker.incarnation",
        "that a lane which waited for a stream waits for what is launched there later",
    ),
    Mutation(
        "lane-ignores-incarnation",
        _MOVER + "lane_ledger.cpp",
        " || found->second.incarnation < marker.incarnation",
        "",
        "that a lane which waited for a stream waits for a later one with its id",
        "not needed: a later stream's markers have later sequences, which are compared as well",
    ),
    Mutation(
        "earlier-incarnations",
        _RUNTIME + "marker_cover.cpp",
        "    if (later == kept(oldest).incarnation) {\n      break;",
        "    {\n      break;",
        "that what is behind a stream's launches is behind those of ended streams which had its id",
    ),
    Mutation(
        "stream-end-untold",
        _RUNTIME + "launches.cpp",
        "  session->markers.destroyed(stream, stream_id);\n",
        "",
        (
            "that a stream's end is told, so that its last launches are marked and another one "
            "may have its id"
        ),
    ),
    Mutation(
        "copies-unseen",
        _HOOKS + "transfers.hpp",
        "    reported = !execution.empty();\n",
        "",
        "that copies and memsets are reported and marked",
    ),
    Mutation(
        "written-unseen",
        _HOOKS + "transfers.hpp",
        "    execution.add_bytes(written.address, written.bytes, Execution::Access::kWrite, 1);\n",
        "",
        "that what a copy or a memset writes is reported",
    ),
    # ---- use after a discard
    Mutation(
        "event-before-discard",
        _MOVER + "discard_rules.cpp",
        "      error = backend_.discard(id, *range);\n",
        "      lane.ledger.issued(command.id, 0, false);\n      committed.behind = "
        "lane.ledger.event_after(backend_, command.id);\n"
        "      error = backend_.discard(id, *range);\n",
        "that the event which streams wait for lies behind the discard",
    ),
    Mutation(
        "shared-id-does-not-wait",
        _RUNTIME + "marker_table.cpp",
        "    all = (sharing_[i].stream() == nullptr || each(sharing_[i])) && all;\n",
        "",
        "that streams which share an id wait",
    ),
    Mutation(
        "default-stream-waits-elsewhere",
        _RUNTIME + "stream_waits.cpp",
        "  if (stream() != CU_STREAM_LEGACY) {\n    return wait_here();\n  }\n",
        "  if (stream()) {\n    return wait_here();\n  }\n",
        "that the default stream which waits is that of its context, not of the current one",
    ),
    Mutation(
        "new-stream-does-not-wait-alone",
        _RUNTIME + "launches.cpp",
        ("  if (!session) [[unlikely]] {\n    follow_discards(stream);\n  } else"),
        "  if (!session) [[unlikely]] {\n  } else",
        "that launches wait for discards when the daemon is gone",
        noticed_by=_LANES + "test_a_discard_is_waited_for_when_the_daemon_is_gone",
    ),
    Mutation(
        "swept-too-early",
        _MOVER + "discard_map.cpp",
        "return entry.second.id <= ordered_; }",
        "return entry.second.id <= ordered_ + 4; }",
        "that entries are kept until all streams wait for them, where a lane has many",
        also=(_FEW_ENTRIES,),
    ),
    Mutation(
        "child-keeps-discards",
        _RUNTIME + "discards.cpp",
        "void Discards::abandon_in_child() noexcept { new (this) Discards; }",
        "void Discards::abandon_in_child() noexcept {}",
        "that a child process waits for no discard of its parent",
        noticed_by=_LANES + "test_the_child_of_a_fork_waits_for_no_discard",
    ),
    Mutation(
        "reactivated-without-waiting",
        _RUNTIME + "allocation_blocks.cpp",
        "  use_after_discards(address, bytes);\n",
        "",
        "that streams wait for a discard before the memory is used again",
    ),
    _THREAD_WAITS,
    Mutation(
        "one-stream-waits",
        _RUNTIME + "marker_table.cpp",
        "{ return stream.wait(event); }",
        "{ return &stream == &streams_[0] || stream.wait(event); }",
        "that every stream waits, not all but one",
    ),
    Mutation(
        "new-stream-does-not-wait",
        _RUNTIME + "launches.cpp",
        ("    session->markers.enter(stream, stream_id);\n    follow_discards(stream);\n"),
        "",
        "that a stream launched on for the first time waits for discards",
    ),
    Mutation(
        "overlaps-before",
        _MOVER + "discard_map.cpp",
        (
            "  for (auto at = first_at(address); at != entries_.end() && at->first < address + "
            "bytes; ++at) {"
        ),
        (
            "  for (auto at = entries_.lower_bound(address); at != entries_.end() && at->first < "
            "address + bytes; ++at) {"
        ),
        "that a discard which begins before the memory is found",
    ),
    Mutation(
        "ordered-too-far",
        _MOVER + "discard_map.cpp",
        "  ordered_ = std::max(ordered_, id);",
        "  ordered_ = std::max(ordered_, id + 8);",
        "that later discards than the one that streams wait for are waited for as well",
    ),
    Mutation(
        "ordered-on-all-devices",
        _RUNTIME + "discards.cpp",
        "  lanes_[device].entries.ordered(id);",
        "  for (Lane& each : lanes_) each.entries.ordered(id);",
        (
            "that streams which wait for a discard of one device wait for earlier ones of another "
            "as well"
        ),
        noticed_by=_LANES + "test_streams_that_wait_for_one_device_wait_for_the_other_as_well",
    ),
    Mutation(
        "any-context-ends-all",
        _RUNTIME + "discards.cpp",
        "    if (context && lane.context == context) {\n      lane.entries.clear();",
        "    if (context) {\n      lane.entries.clear();",
        "that the end of a context leaves the discards of other contexts as they are",
    ),
    Mutation(
        "freed-without-waiting",
        _RUNTIME + "allocations.cpp",
        "  wait_for_discards(describe(record).base, describe(record).bytes);\n",
        "",
        "that freed memory waits for its discards",
        noticed_by=(
            "tests/runtime/test_lane_discards.py::test_memory_that_ends_waits_for_its_discards"
        ),
    ),
    Mutation(
        "any-stream-takes",
        _HOOKS + "pending_frees.cpp",
        "pending.incarnation == stream.incarnation && pending.device",
        "pending.device",
        "that memory freed in stream order is taken on that very stream only",
    ),
    Mutation(
        "incarnations-stay",
        _HOOKS + "streams.cpp",
        (
            "known_streams().incarnations[free] = found.incarnation = "
            "++known_streams().latest_incarnation;"
        ),
        "found.incarnation = known_streams().incarnations[free] = free + 1;",
        "that a stream is told from one that had its handle and its id before",
    ),
    Mutation(
        "pins-not-awaited",
        _RUNTIME + "allocations.cpp",
        "  wait_out_pins(record);\n",
        "",
        "that memory is not freed while the mover is in a call for it",
        noticed_by="tests/runtime/test_free_running.py::test_a_free_does_not_meet_a_move_under_way",
    ),
    Mutation(
        "live-while-pins-are-awaited",
        _RUNTIME + "allocations.cpp",
        "    record->live.store(false);\n  }\n  wait_out_pins(record);\n",
        "  }\n  wait_out_pins(record);\n  record->live.store(false);\n",
        "that the mover takes no further command for memory that is about to be freed",
        noticed_by=_LANES + "test_memory_that_is_about_to_end_is_not_dropped_any_more",
    ),
    Mutation(
        "forbid-does-not-wait",
        _RUNTIME + "discards.cpp",
        "  for (std::size_t device = 0; device < lanes_.size(); ++device) {\n    "
        "wait_given(lanes_[device], proposed[device]);\n  }\n"
        "  return latest();",
        "  return latest();",
        "that a graph's launch waits until the mover has given what it committed to the driver",
        noticed_by=_LANES + "test_a_discard_that_the_driver_takes_long_for_is_waited_for",
    ),
    Mutation(
        "graph-does-not-wait",
        _RUNTIME + "discard_order.cpp",
        "follow(Discards::instance().forbid(), stream);",
        "Discards::instance().forbid();",
        "that a graph's launch waits for discards",
        noticed_by=_LANES + "test_a_graph_waits_and_nothing_is_dropped_from_then_on",
    ),
    # ---- gates (docs/runtime.md, Gates): without these launches wait for themselves, or for nobody
    Mutation(
        "gate-opens-behind-later-moves",
        _MOVER + "gate_rules.cpp",
        "    if (!write(stream, gate, hold.cause - 1)) {\n      return false;\n    }\n",
        "",
        "that launches before a held one do not wait for its moves",
        noticed_by=_GATES + "test_a_launch_waits_behind_its_gate_which_opens_behind_its_move",
    ),
    Mutation(
        "gate-before-unmarked-launches",
        _RUNTIME + "marker_table.cpp",
        (
            "    record(*markers, true, sequence - 1);\n  }\n  return "
            "markers->only_unmarked(sequence);"
        ),
        "  }\n  return true;",
        "that a launch's moves wait for no marker that lies behind its gate",
        noticed_by=_GATES + "test_each_launch_has_a_marker_that_lies_before_the_next_gate",
    ),
    Mutation(
        "graph-ties-streams",
        _MOVER + "mover_rules.cpp",
        "known_device && !ties_streams(command)",
        "known_device",
        (
            "that from the first graph launch on no launch waits at its gate for moves behind "
            "other streams"
        ),
        noticed_by=_GATES
        + "test_a_graph_leaves_gates_but_no_launch_waits_for_other_streams_from_then_on",
    ),
    Mutation(
        "decided-during-a-round",
        _RUNTIME + "mover.cpp",
        " &&\n         !(gates_.used() && decided() != gates_.processed());",
        ";",
        (
            "that the mover does not sleep on a decision without commands that came while it was "
            "at work"
        ),
        noticed_by=_GATES
        + "test_a_decision_without_commands_that_comes_during_a_round_opens_its_gate",
    ),
    Mutation(
        "gate-without-wake-up",
        _RUNTIME + "gates.cpp",
        "  return processed() >= sequence;",
        "  return false;",
        (
            "that the mover comes back to a launch that was queued after its decision had been "
            "processed"
        ),
        noticed_by=_GATES
        + "test_a_launch_that_is_decided_before_its_stream_waits_opens_all_the_same",
    ),
    Mutation(
        "opened-once",
        _RUNTIME + "gates.cpp",
        "    open(ended ? kEpochs : epoch_.load(std::memory_order_relaxed));\n",
        "",
        "that what the mover has queued does not close a gate that was opened for good",
        noticed_by=_GATES + "test_all_are_opened_for_good",
    ),
    Mutation(
        "handed-out-at-once",
        _RUNTIME + "launches.cpp",
        "    session->wait_for_mover();\n",
        "",
        (
            "that memory which is handed out waits for the mover, which may drop its content "
            "until then"
        ),
        noticed_by=_GATES + "test_memory_that_is_handed_out_waits_for_the_mover_and_not_for_long",
    ),
    Mutation(
        "handed-out-late-to-an-idle-gpu",
        _RUNTIME + "live_session.cpp",
        " &&\n                               markers.has_outstanding(mover::kLeastOutstanding)",
        "",
        (
            "that memory which is handed out does not wait for the mover while the GPU is about "
            "to run out of launches"
        ),
        noticed_by=_GATES + "test_it_does_not_wait_while_the_gpu_is_about_to_run_out_of_launches",
    ),
    Mutation(
        "not-waited-for-the-mover",
        _RUNTIME + "discards.cpp",
        "    wait_given(lanes_[device], found.id);\n    if (const Awaited",
        "    if (const Awaited",
        "that the thread waits until the mover has given the discard to the driver",
    ),
)
