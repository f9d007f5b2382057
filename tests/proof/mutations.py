"""Mutations: each takes one edge or check out of the invalidation protocol, or out of the order of moves that it rests on.

With any of them the random programs must fail (run_mutations). Those that they cannot notice stay in the list with the reason why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mutation:
    """`old` occurs once in the file. removes: what is missing then. survives: why no program can tell; empty: some program must fail.

    also: other mutations that are made together with this one, where two checks stand behind each other.
    """

    name: str
    file: str
    old: str
    new: str
    removes: str
    survives: str = ""
    also: tuple[Mutation, ...] = ()

    def edits(self) -> tuple[Mutation, ...]:
        """All that is made together, this one first."""
        return (self, *(edit for other in self.also for edit in other.edits()))


_CORE = "native/core/"
_RUNTIME = "native/runtime/"

# ---- checks that stand behind others
_BEHIND = Mutation(
    "commit-without-check-behind",
    _RUNTIME + "allocation_blocks.cpp",
    "  if (block != book().blocks.end() && block->first < pin.address + pin.bytes) {\n    return false;\n  }\n",
    "",
    "that no active block begins in the memory of a discard",
)
_BEFORE = Mutation(
    "commit-without-check-before",
    _RUNTIME + "allocation_blocks.cpp",
    "  if (block != book().blocks.begin() && (--block)->first + block->second > pin.address) {\n    return false;\n  }\n",
    "",
    "that no active block reaches into the memory of a discard",
)
_SINCE = Mutation(
    "handed-out-since",
    _RUNTIME + "allocation_blocks.cpp",
    "  if (table.handed_out(pin.address, pin.bytes) > command.cause) {\n    return false;\n  }\n",
    "",
    "that memory which was handed out after the decision is not dropped, though it was taken back again",
)
_OWN = Mutation(
    "commit-own-memory",
    _RUNTIME + "allocation_blocks.cpp",
    "record->of_program || ",
    "",
    "that the program's own managed memory is not committed",
)
_WITHOUT_BLOCKS = Mutation(
    "commit-without-blocks",
    _RUNTIME + "allocation_blocks.cpp",
    " || !record->has_blocks.load(std::memory_order_relaxed)) {",
    ") {",
    "that only memory of which PyTorch reports blocks is committed",
)
_GRAPH_IN_MOVER = Mutation(
    "graph-rule-of-the-mover",
    _RUNTIME + "session.cpp",
    "{ follow(Discards::instance().forbid(), stream); }",
    "{ follow(Discards::instance().latest(), stream); }",
    "that nothing is committed after a graph's launch",
)
_THREAD_WAITS = Mutation(
    "thread-does-not-wait",
    _RUNTIME + "session.cpp",
    "      await(awaited);  // then it is done, for whoever comes\n",
    "",
    "that the thread waits where a stream cannot be made to wait",
)
MUTATIONS = (
    # ---- what is proposed (docs/core.md, "Dead blocks")
    Mutation(
        "dies-in-part",
        _CORE + "invalidation.cpp",
        "const std::uint64_t first = std::max((from + origin + kBlockBytes - 1) / kBlockBytes, (offset + origin) / kBlockBytes);",
        "const std::uint64_t first = (offset + origin) / kBlockBytes;",
        "that the head of a dead UM block is inactive, and the mover's look at it",
        also=(_BEFORE,),
    ),
    Mutation(
        "dies-in-part-behind",
        _CORE + "invalidation.cpp",
        "std::min((to + origin) / kBlockBytes, (offset + bytes + origin + kBlockBytes - 1) / kBlockBytes);",
        "(offset + bytes + origin + kBlockBytes - 1) / kBlockBytes;",
        "that the end of a dead UM block is inactive, and the mover's look at it",
        also=(_BEHIND,),
    ),
    Mutation(
        "discard-not-after-death",
        _CORE + "invalidation.cpp",
        "std::max(block.died, block.use_sequence), used_streams_,",
        "block.use_sequence, 1ull << 0,",
        "that a discard waits for all that was launched, on all streams, when the block was taken back",
    ),
    Mutation(
        "discard-waits-for-nothing",
        _CORE + "invalidation.cpp",
        "std::max(block.died, block.use_sequence), used_streams_,",
        "0, 0,",
        "that a discard waits for launches",
    ),
    Mutation(
        "discard-not-after-moves",
        _CORE + "invalidation.cpp",
        "          std::max(block.moved_in, block.moved_out));",
        "          0);",
        "that a discard waits for the block's moves",
        "order for speed: a discard that overtakes a move of its block drops what nobody may read either way",
    ),
    Mutation(
        "mismatch-check",
        _CORE + "invalidation.cpp",
        "         statistics_.block_mismatches == 0 && ",
        "         ",
        "that nothing is proposed when the allocator's totals disagree",
    ),
    Mutation(
        "space-not-after-discard",
        _CORE + "placement.cpp",
        "await_move(device, ordinal, kind, std::max(block.discarded, space.discard ? space.id : 0));",
        "",
        "that a prefetch waits for the discard of the block, or of the space that it takes",
        "order for speed: a prefetch that comes before its space is free makes the driver evict",
    ),
    Mutation(
        "eviction-not-after-use",
        _CORE + "victims.cpp",
        "command(DEEPUM_COMMAND_EVICT, ordinal, block, block.use_sequence, block.streams,",
        "command(DEEPUM_COMMAND_EVICT, ordinal, block, 0, 0,",
        "that an eviction waits for its victim's last use",
        "order for speed: a block evicted too early is faulted in again",
    ),
    Mutation(
        "own-memory",
        _CORE + "invalidation.cpp",
        " && !allocation.of_program &&",
        " &&",
        "that the program's own managed memory is neither proposed nor committed",
        also=(_OWN,),
    ),
    Mutation(
        "graph-rule",
        _CORE + "invalidation.cpp",
        " && !graphs_ &&",
        " &&",
        "that nothing is proposed nor committed after a graph's launch",
        also=(_GRAPH_IN_MOVER,),
    ),
    Mutation(
        "stays-dead",
        _CORE + "invalidation.cpp",
        "    block.dead = false;\n",
        "",
        "that a block handed out again is alive for the core, and that the mover looks at what is active",
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
        _RUNTIME + "mover_discards.cpp",
        "|| !markers_.all_can_wait() ",
        "",
        "that nothing is discarded while a stream could not wait for it, and that the thread waits instead",
        also=(_THREAD_WAITS,),
    ),
    Mutation(
        "commit-untold",
        _RUNTIME + "allocation_blocks.cpp",
        "  return Discards::instance().propose(command.device, context, pin.address, pin.bytes, command.id);",
        "  return context != nullptr;",
        "that whoever uses the memory again finds the discard",
    ),
    Mutation(
        "unmarked",
        _RUNTIME + "mover_discards.cpp",
        "!markers_.all_marked(command.stream_mask) ||",
        "",
        "that nothing is discarded behind launches that no marker could be recorded behind",
        "not shown: markers would have to be refused, or 512 of them to be recorded anew; test_lane_discards.py has both",
    ),
    Mutation(
        "marker-recorded-anew",
        _RUNTIME + "mover_waits.cpp",
        "    if (!of->still(marker)) {\n      *again = true;\n      return false;\n    }\n",
        "",
        "that a marker which went on while the lane waited for it is noticed",
        "not shown: a thread would have to record 512 markers between two calls of the mover, on another stream that has the id by then",
    ),
    Mutation(
        "moves-not-awaited",
        _RUNTIME + "mover_waits.cpp",
        "      found->moves.emplace_back(&other, command.after_move);",
        "",
        "that a move waits for the move before it",
        "order for speed: unified memory is coherent, and who uses memory again waits for its discard, whatever else moves",
    ),
    Mutation(
        "markers-not-awaited",
        _RUNTIME + "mover_waits.cpp",
        "          found->markers.emplace_back(&of, marker);",
        "",
        "that moves and discards wait for the launches before them",
    ),
    # ---- use after a discard
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
        _RUNTIME + "session.cpp",
        "    session->markers.enter(stream, stream_id);\n    follow(Discards::instance().latest(), stream);\n",
        "",
        "that a stream launched on for the first time waits for discards",
    ),
    Mutation(
        "overlaps-before",
        _RUNTIME + "discards.cpp",
        "  for (auto at = first_at(address); at != entries.end() && at->first < address + bytes; ++at) {",
        "  for (auto at = entries.lower_bound(address); at != entries.end() && at->first < address + bytes; ++at) {",
        "that a discard which begins before the memory is found",
    ),
    Mutation(
        "ordered-too-far",
        _RUNTIME + "discards.cpp",
        "  lane.ordered = std::max(lane.ordered, id);",
        "  lane.ordered = std::max(lane.ordered, id + 8);",
        "that later discards than the one that streams wait for are waited for as well",
    ),
    Mutation(
        "ordered-on-all-devices",
        _RUNTIME + "discards.cpp",
        "  lane.ordered = std::max(lane.ordered, id);",
        "  for (Lane& each : lanes_) each.ordered = std::max(each.ordered, id);",
        "that streams which wait for a discard of one device wait for earlier ones of another as well",
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
    ),
    Mutation(
        "graph-does-not-wait",
        _RUNTIME + "session.cpp",
        "{ follow(Discards::instance().forbid(), stream); }",
        "{ Discards::instance().forbid(); }",
        "that a graph's launch waits for discards",
    ),
    Mutation(
        "not-waited-for-the-mover",
        _RUNTIME + "discards.cpp",
        "    wait_given(lanes_[device], found.id);\n    if (const Awaited",
        "    if (const Awaited",
        "that the thread waits until the mover has given the discard to the driver",
    ),
)
