"""Evictions by next use: what is used last of all goes first, as far as it is known, and what was
used just now rests before.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from duplicating import Program, Step, blocks, span, uses
from programs import Launch, sweep, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command, Core, CoreSettings, EventWriter

OLDEST_LAST_USE, FURTHEST_NEXT_USE = 1, 2
ON_DEMAND = 0
IDLE = [Step(900 + i) for i in range(1300)]  # launches that use nothing
# Launches that the driver lets the host run ahead: what is farther back has run, and may go.
QUEUE = 64
RESTED = [Step(700 + i) for i in range(QUEUE)]
X, Y, SHORT = BlockRange(0, 0, 8), BlockRange(0, 8, 8), BlockRange(1, 0, 8)
FULL = [uses(90, SHORT)]  # 8 blocks of which the card has no room


def program(sizes: tuple[int, ...] = (16, 24), **settings: int) -> Program:
    """A card of 16 blocks; X and Y fill it."""
    return Program(
        16,
        sizes,
        **{"eviction_order": FURTHEST_NEXT_USE, "advice": 0, "launch_queue": QUEUE, **settings},
    )


def gone(commands: Iterable[Command]) -> set[tuple[int, int]]:
    return {*blocks(commands, "evict"), *blocks(commands, "drop"), *blocks(commands, "discard")}


def in_order(commands: Iterable[Command], kind: str) -> list[int]:
    return [c.after_sequence for c in commands if c.kind == kind for _ in range(c.block_count)]


@pytest.mark.parametrize("nearer", [X, Y])
def test_what_is_needed_later_goes(nearer: BlockRange) -> None:
    """Whether it was used before the other or after it."""
    made, later = program(), Y if nearer == X else X
    step = [uses(1, X), uses(2, Y), *RESTED, *FULL, uses(3, nearer), *IDLE[:40], uses(4, later)]
    made.run(step, 4, look=False)
    made.run(step[: 2 + len(RESTED)], look=False)
    assert gone(made.launch(FULL[0])) == set(span(0, later.first, 8))


@pytest.mark.parametrize(("needed", "goes"), [(900, X), (1300, Y)])
def test_what_ends_by_itself_counts_as_sixteen_times_as_far(needed: int, goes: BlockRange) -> None:
    """The tensor in X is taken back 70 launches after its last use; Y is needed again so many
    launches after its own.
    """
    made = program()
    size = 8 * UM_BLOCK_BYTES

    def begin() -> None:
        made.writer.block(True, 0, 0, size, 0)
        made.run([uses(1, X), uses(2, Y)], look=False)

    for _ in range(4):
        begin()
        made.run([*RESTED, *FULL, *IDLE[:2]], look=False)
        made.writer.block(False, 0, 0, size, 0)
        made.run([*IDLE[2 : needed - 66], uses(3, Y)], look=False)
    begin()
    made.run(RESTED, look=False)
    assert gone(made.launch(FULL[0])) == set(span(0, goes.first, 8))


@pytest.mark.parametrize("first", [0, 4])
def test_of_one_launchs_blocks_those_that_wait_longest_tell(first: int) -> None:
    """Half of X, which half it is, is used again at once, the rest long after Y: that rest is what
    goes.
    """
    half, rest = BlockRange(0, first, 4), BlockRange(0, 4 - first, 4)
    made = program()
    step = [
        uses(1, X),
        uses(2, Y),
        uses(3, half),
        *IDLE[:8],
        uses(90, BlockRange(1, 0, 4)),
        uses(4, half),
        uses(5, Y),
        *IDLE[8:60],
    ]
    step += [uses(6, rest)]
    made.run(step, 4, look=False)
    made.run(step[:11], look=False)
    assert gone(made.launch(step[11])) >= set(span(0, rest.first, 4))
    assert not gone(made.run(step[12:14], look=False)), "what the two need was there"


def test_an_execution_that_follows_itself_is_met_again_by_itself_at_once() -> None:
    """X is used in each of 40 launches in a row, Y before and long after: in the second of these it
    is known already.
    """
    made = program()
    step = [uses(2, Y), *[uses(1, X)] * 40, *IDLE[:200]]
    made.run(step, 2, look=False)
    made.run(step[:20], look=False)
    assert gone(made.launch(uses(90, BlockRange(1, 0, 4)))) <= set(span(0, Y.first, 8))


@pytest.mark.parametrize("first", [True, False])
def test_what_nobody_is_known_to_need_goes_if_it_was_used_before_what_is_needed_last(
    first: bool,
) -> None:
    """A new kernel takes 4 blocks, as the first or the last of the step: nothing tells when they
    are needed again.
    """
    made = program()
    there, new = uses(1, BlockRange(0, 0, 12)), uses(77, BlockRange(0, 12, 4))
    made.run([there, *RESTED, *FULL, *IDLE[:40]], 4, look=False)
    made.run([new, there] if first else [there, new], look=False)
    made.run(RESTED, look=False)
    left = gone(made.launch(uses(78, BlockRange(1, 8, 8))))
    assert set(span(0, 12, 4)) <= left if first else not set(span(0, 12, 4)) & left


def victims_of(
    capacity: int, launches: list[Launch], launch_queue: int = 1024
) -> list[tuple[int, int]]:
    """Of each victim of the fourth round: launches since its last use, and blocks that had come
    since. The launches use slot 0.
    """
    footprint, rounds = 1 + max(r.first + r.count - 1 for one in launches for r in one.ranges), 4
    core = Core(
        CoreSettings.default(
            eviction_order=FURTHEST_NEXT_USE,
            prefetch_degree=1,
            headroom_blocks=0,
            launch_queue=launch_queue,
        )
    )
    writer = EventWriter()
    writer.device(capacity)
    writer.allocate(0, footprint)
    core.process(writer.take())
    resident: set[int] = set()
    used: dict[int, tuple[int, int]] = {}  # at that launch, when so many had come
    came, found = 0, []
    for number, launch in enumerate(launches * rounds):
        core.process(write(writer, [launch]))
        touched = {block for r in launch.ranges for block in range(r.first, r.first + r.count)}
        leave = {block for _, block in gone(core.take_commands())}
        if number >= (rounds - 1) * len(launches):
            found += [(number - used[block][0], came - used[block][1]) for block in leave]
        came += len(touched - (resident - leave))
        resident = resident - leave | touched
        used |= dict.fromkeys(touched, (number, came))
    return found


def test_what_was_used_lately_rests_for_32_launches_and_32_blocks() -> None:
    """Of a sweep what was used just now is needed last; but its space would come late. A sixteenth
    of the card is more here.
    """
    found = victims_of(1024, sweep(1536, 1536))
    assert found
    assert min(launches for launches, _ in found) in range(32, 48)
    assert min(brought for _, brought in found) in range(32, 40)


@pytest.mark.parametrize(("capacity", "rests"), [(1024, 32 + 8), (4096, 32 + 32)])
def test_of_a_128th_of_the_card_that_is_needed_last_what_was_used_longest_ago_goes(
    capacity: int, rests: int
) -> None:
    """Evictions go in order: the others would hold up those behind them."""
    found = victims_of(capacity, sweep(capacity * 3 // 2, capacity * 3 // 2))
    assert min(launches for launches, _ in found) in range(rests, rests + 8)


def test_what_has_run_holds_up_nothing() -> None:
    """The driver does not let the host run ahead: what is needed last goes."""
    found = victims_of(4096, sweep(6144, 6144), launch_queue=0)
    assert min(launches for launches, _ in found) == 1


def test_on_a_small_card_it_rests_for_a_sixteenth_of_it() -> None:
    found = victims_of(256, sweep(384, 384))
    assert found
    assert min(brought for _, brought in found) in range(16, 24)


def test_of_large_launches_two_are_enough() -> None:
    """64 blocks a launch: a sixteenth of the card has come with one."""
    found = victims_of(1024, sweep(3072, 48))
    assert found
    assert min(launches for launches, _ in found) == 2


@pytest.mark.parametrize("shared", [0, 7])
def test_the_first_and_the_last_block_of_a_run_have_a_next_use_of_their_own(shared: int) -> None:
    """Another tensor shares it, and is used before Y is; the rest of X is needed last. The chain
    does not look that far.
    """
    made = program(prefetch_degree=1)
    step = [
        uses(1, X),
        uses(2, Y),
        *RESTED,
        *FULL,
        *IDLE[:8],
        uses(3, BlockRange(0, shared, 1)),
        *IDLE[8:100],
        uses(4, Y),
    ]
    step += [*IDLE[100:300], uses(5, X)]
    made.run(step, 4, look=False)
    made.run(step[: 2 + len(RESTED)], look=False)
    left = gone(made.launch(FULL[0]))
    assert (0, shared) not in left
    assert left > {key for key in span(0, X.first, 8) if key != (0, shared)}


@pytest.mark.parametrize("more", [(), (BlockRange(0, 8, 1),)])
def test_what_lies_elsewhere_each_time_is_used_again_as_what_was_expected_in_its_place(
    more: tuple[BlockRange, ...],
) -> None:
    """The tensor behind the first three blocks has another name in each iteration, so that its
    launches are new: it is needed again before Y, as these are. Every second one of its launches
    has one argument more, or none has.
    """
    made, same, tensor = program(sizes=(16, 24, 48)), BlockRange(0, 0, 3), BlockRange(0, 3, 5)
    size = tensor.count * UM_BLOCK_BYTES

    def begin(number: int) -> None:
        made.writer.block(True, 2, number * size, size, 0)  # has the name that the tensor had
        made.writer.block(True, 0, tensor.first * UM_BLOCK_BYTES, size, 0)
        made.run(
            [uses(1, same, tensor, *(more if number % 2 else ())), uses(2, Y), *RESTED], look=False
        )

    for number in range(5):
        begin(number)
        made.run([*FULL, *IDLE[:40], uses(3, same, tensor), *IDLE[40:200], uses(4, Y)], look=False)
        made.writer.block(False, 0, tensor.first * UM_BLOCK_BYTES, size, 0)
    begin(5)
    assert gone(made.launch(FULL[0])) == set(span(0, Y.first, 8))


def test_what_a_launch_misses_leaves_at_once_and_in_order_of_last_use() -> None:
    """The farthest is what was used first, the nearest what was used last; of them all must go, and
    the first used first.
    """
    core, writer = (
        Core(
            CoreSettings.default(
                eviction_order=FURTHEST_NEXT_USE, headroom_blocks=0, launch_queue=QUEUE
            )
        ),
        EventWriter(),
    )
    writer.device(64)
    writer.allocate(0, 64)
    writer.allocate(1, 40)
    core.process(writer.take())
    there = [Launch(100 + i, (BlockRange(0, 8 * i, 8),)) for i in range(8)]
    again = [Launch(200 + i, (BlockRange(0, 8 * i, 8),)) for i in reversed(range(8))]
    step = [
        *there,
        *[Launch(300 + i, ()) for i in range(QUEUE)],
        Launch(1, (BlockRange(1, 0, 40),)),
        *again,
    ]
    for _ in range(4):
        core.process(write(writer, step))
    core.process(write(writer, step[: 8 + QUEUE]))
    core.take_commands()
    core.process(write(writer, [step[8 + QUEUE]]))
    commands = [c for c in core.take_commands() if c.kind in ("evict", "prefetch")]
    evicted = in_order(commands, "evict")
    assert len(evicted) == 40
    assert evicted == sorted(evicted)
    first_prefetch = next(i for i, c in enumerate(commands) if c.kind == "prefetch")
    assert all(c.kind == "prefetch" for c in commands[first_prefetch:])
    assert gone(commands) == set(span(0, 0, 40)), "those needed last"


def test_a_restart_of_the_chain_leaves_what_was_learned() -> None:
    made = program()
    step = [
        uses(1, X),
        uses(2, Y),
        *RESTED,
        *FULL,
        *IDLE[:100],
        uses(3, Y),
        *IDLE[100:200],
        uses(4, X),
    ]
    made.run(step, 4, look=False)
    made.run(step[:2], look=False)
    restarts = made.core.statistics().chain_restarts
    made.run([Step(5000 + i) for i in range(QUEUE)], look=False)
    assert made.core.statistics().chain_restarts == restarts + 1
    assert gone(made.launch(uses(91, SHORT))) == set(span(0, X.first, 8))


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_what_a_launch_uses_itself_never_leaves_for_it(order: int) -> None:
    """Also where it is larger than the card: then nothing else does."""
    made = program(eviction_order=order)
    step = [uses(1, X), uses(2, Y), uses(3, X, BlockRange(1, 0, 24))]
    made.run(step * 4, look=False)
    made.run(step[:2], look=False)
    commands = made.launch(step[2])
    assert gone(commands) <= {*span(0, Y.first, 8), *span(1, 0, 24)}
    assert made.core.statistics().resident_bytes <= 16 * UM_BLOCK_BYTES


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_on_demand_no_more_is_believed_to_be_there_than_the_card_has(order: int) -> None:
    made = program(policy=ON_DEMAND, eviction_order=order)
    made.run([uses(1, X), uses(2, Y), *FULL], 4, look=False)
    assert made.core.statistics().resident_bytes == 16 * UM_BLOCK_BYTES


@pytest.mark.parametrize("order", [OLDEST_LAST_USE, FURTHEST_NEXT_USE])
def test_what_the_program_brought_itself_stays_for_its_launch(order: int) -> None:
    made = Program(64, (40, 64), eviction_order=order, advice=0)
    made.run([uses(10 + i, BlockRange(0, 4 * i, 4)) for i in range(10)], look=False)
    made.writer.program_prefetch(BlockRange(1, 0, 24), 0)
    made.decided()
    left = gone(
        made.run([uses(50 + i, BlockRange(1, 24 + 4 * i, 4)) for i in range(6)], look=False)
    )
    assert len(left) >= 24
    assert {slot for slot, _ in left} == {0}


@pytest.mark.parametrize(("distance", "leaves"), [(100, (0, "drop")), (2, (1, "evict"))])
def test_what_the_host_has_goes_first_unless_it_is_needed_soon(
    distance: int, leaves: tuple[int, str]
) -> None:
    """Slot 0 is read only, and needed again after so many launches of some 550; the tensor in slot
    1, new in each iteration, later.
    """
    made = Program(16, (8, 16), eviction_order=FURTHEST_NEXT_USE, launch_queue=QUEUE)
    clean, tensor, short = (
        Step(1, read=(BlockRange(0, 0, 8),)),
        BlockRange(1, 0, 8),
        Step(3, written=(BlockRange(1, 8, 8),)),
    )
    before = [clean, Step(2, written=(tensor,)), *RESTED]
    behind = [
        *IDLE[:distance],
        Step(4, read=clean.read),
        *IDLE[distance:450],
        Step(5, read=(tensor,)),
        *IDLE[:50],
    ]
    size = 16 * UM_BLOCK_BYTES
    for _ in range(5):
        made.writer.block(True, 1, 0, size, size)
        # All of slot 0 leaves, and comes back.
        made.run([*before, short, *behind, Step(6, written=(BlockRange(1, 0, 16),))])
        made.writer.block(False, 1, 0, size, 0)
    made.writer.block(True, 1, 0, size, size)
    made.run(before, look=False)
    left = [c for c in made.launch(short) if c.kind in ("evict", "drop")]
    assert {(c.slot, c.kind) for c in left} == {leaves}


def test_what_was_not_used_when_it_should_have_been_is_not_needed_last_because_of_a_later_iteration() -> (
    None
):
    """The chain holds more than three steps. Z is used twice in each, but not the second time in
    the latest: the chain's word of its next use is passed, and what its end says of it is three
    steps away. W and then V, which are needed last of what is known, go, and not Z, which was used
    after them: its copy would hold up all that leaves behind it. (The launches are another
    device's, so that nothing is fetched ahead.)
    """
    turns, launches = 5, 200
    core = Core(
        CoreSettings.default(
            headroom_blocks=0, advice=0, launch_queue=QUEUE, prefetch_degree=3 * launches + 90
        )
    )
    writer = EventWriter()
    writer.device(32)
    writer.device(32, device=1)
    writer.allocate(0, 48)
    other, v, w, z, new = (BlockRange(0, 8 * i, 8) for i in range(5))
    often = {0: other, 20: v, 40: w, 60: z, 80: z}
    lately = {0: other, 20: v, 40: w, 60: z, 135: BlockRange(0, 40, 8), launches - 1: new}
    commands: list[Command] = []

    def step(number: int, uses: dict[int, BlockRange], skipped: int | None = None) -> None:
        for i in range(launches):
            turn = number % turns if i % 3 == 0 else 0  # what came so many steps ago agrees best
            if i != skipped:
                writer.execute(1000 * turn + i, [uses[i]] if i in uses else [], device=1)
        core.process(writer.take())
        commands.extend(core.take_commands())

    for number in range(4 * turns):
        step(number, often)
    assert gone(commands) == set()
    step(4 * turns, lately, skipped=80)
    assert gone(commands) == {*span(0, v.first, 8), *span(0, w.first, 8)}
