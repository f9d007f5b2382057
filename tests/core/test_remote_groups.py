"""Tensors of one size that are used once an iteration stay on the host where iterations are shorter
so, and only there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from duplicating import FAILED, Step, blocks, uses
from timed import TimedProgram, Took

from deepum.core import UM_BLOCK_BYTES, BlockRange, Command

REMOTE, ALL = 1, 3
SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION = 3, 4
FURTHEST_NEXT_USE = 0
LAUNCHES, CACHES, CACHE, WEIGHTS, CARD = 64, 4, 8, 40, 36  # of an iteration; tensors; UM blocks
CACHE_SLOTS = set(range(1, 1 + CACHES))
TRIED = 40  # iterations by which a trial of each kind is over


def weights(i: int) -> Step:
    """Some of them, which other launches of the iteration use as well."""
    return uses(100 + i, BlockRange(0, 8 * (i % 5), 8))


def decoding(caches: int = CACHES, again: int | None = None) -> list[Step]:
    """Launches of an iteration: weights throughout, and each cache at its place; `again`: and once
    more, so many launches later.
    """
    steps = [weights(i) for i in range(LAUNCHES)]
    for i in range(caches):
        steps[12 * i + 3] = uses(200 + i, BlockRange(1 + i, 0, CACHE))
        if again is not None:
            steps[(12 * i + 3 + again) % LAUNCHES] = uses(300 + i, BlockRange(1 + i, 0, CACHE))
    return steps


class Timed(TimedProgram):
    """What is tried is advised to be on the host: `remote`, blocks by slot."""

    def __init__(
        self,
        took: Took,
        card: int = CARD,
        sizes: tuple[int, ...] = (WEIGHTS, *[CACHE] * CACHES),
        **settings: int,
    ) -> None:
        super().__init__(
            took, card, sizes, **{"advice": REMOTE, "eviction_order": FURTHEST_NEXT_USE, **settings}
        )
        self.remote: set[tuple[int, int]] = set()

    def other_way(self) -> bool:
        return bool(self.remote)

    def decided(self) -> list[Command]:
        made = super().decided()
        self.remote |= set(blocks(made, "advise", SET_PREFERRED_LOCATION))
        self.remote -= set(blocks(made, "advise", UNSET_PREFERRED_LOCATION))
        return made

    def run_on(self, iterations: int, steps: list[Step] | None = None) -> list[Command]:
        return [
            command for _ in range(iterations) for command in self.iteration(steps or decoding())
        ]

    def run_until_tried(self) -> None:
        for _ in range(TRIED):
            if not self.remote:
                self.run_on(1)
        assert self.remote

    def remote_slots(self) -> set[int]:
        return {slot for slot, _ in self.remote}

    def tried(self) -> bool:
        return bool(blocks(self.commands, "advise", SET_PREFERRED_LOCATION))


def faster(on_host: bool) -> int:
    return 80 if on_host else 100


def slower(on_host: bool) -> int:
    return 120 if on_host else 100


@pytest.fixture
def made() -> Iterator[Callable[..., Timed]]:
    """Programs, whose commands the plain core gives as well."""
    programs: list[Timed] = []

    def make(took: Took, **changes: object) -> Timed:
        programs.append(Timed(took, **changes))  # type: ignore[arg-type]
        return programs[-1]

    yield make
    for program in programs:
        program.agree()


def test_where_iterations_are_shorter_so_they_stay_on_the_host(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_on(TRIED)
    assert program.remote == {(slot, block) for slot in CACHE_SLOTS for block in range(CACHE)}
    assert program.core.statistics().remote_bytes == CACHES * CACHE * UM_BLOCK_BYTES
    after = program.run_on(10)
    moved = blocks(after, "prefetch") + blocks(after, "populate")
    assert not {slot for slot, _ in moved} & CACHE_SLOTS
    assert program.remote_slots() == CACHE_SLOTS


def test_what_is_on_the_device_makes_its_room(made: Callable[..., Timed]) -> None:
    program = made(faster, card=40)
    program.run_on(TRIED)
    at = next(
        i for i, command in enumerate(program.commands) if command.advice == SET_PREFERRED_LOCATION
    )
    brought: set[tuple[int, int]] = set()
    for command in program.commands[:at]:
        named = {one for one in blocks([command], command.kind) if one[0] in CACHE_SLOTS}
        brought = (
            brought | named
            if command.kind in ("prefetch", "populate")
            else brought - named
            if command.kind == "evict"
            else brought
        )
    assert brought  # some of them are there
    cause = program.commands[at].cause
    assert brought <= set(
        blocks([command for command in program.commands[at:] if command.cause == cause], "evict")
    )


def test_where_they_are_longer_so_they_are_called_back(made: Callable[..., Timed]) -> None:
    program = made(slower)
    program.run_on(TRIED)
    assert program.tried() and not program.remote
    assert program.core.statistics().remote_bytes == 0
    moved = blocks(program.run_on(3), "prefetch")
    assert {slot for slot, _ in moved} & CACHE_SLOTS  # as before
    tried = len(blocks(program.commands, "advise", SET_PREFERRED_LOCATION))
    program.run_on(30)
    assert len(blocks(program.commands, "advise", SET_PREFERRED_LOCATION)) == tried  # once


def test_nobody_waits_for_the_end_where_it_is_far_longer(made: Callable[..., Timed]) -> None:
    program = made(lambda on_host: 5000 if on_host else 100)
    program.run_on(TRIED)
    began, ended = (
        next(command.cause for command in program.commands if command.advice == advice)
        for advice in (SET_PREFERRED_LOCATION, UNSET_PREFERRED_LOCATION)
    )
    assert ended - began <= LAUNCHES
    assert not program.remote


def test_times_are_wanted_until_that_is_known(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_until_tried()
    while len(program.commands) == 0 or program.core.wants_faults:
        assert program.launches < TRIED * LAUNCHES
        program.run_on(1)
    assert program.remote
    program.run_on(20)
    assert not program.core.wants_faults


@pytest.mark.parametrize("again", [20, 32, 45])
def test_what_is_used_twice_an_iteration_is_not_tried(
    made: Callable[..., Timed], again: int
) -> None:
    program = made(faster)
    program.run_on(TRIED, decoding(again=again))
    assert not program.tried()


def test_what_is_used_in_one_go_is(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_on(TRIED, decoding(again=1))
    assert program.remote_slots() == CACHE_SLOTS


def test_one_of_them_that_is_used_otherwise_tells_of_all(made: Callable[..., Timed]) -> None:
    program = made(faster)
    steps = decoding()
    steps[40] = uses(300, BlockRange(1, 0, CACHE))
    program.run_on(TRIED, steps)
    assert not program.tried()


@pytest.mark.parametrize("card", [WEIGHTS + CACHES * CACHE, WEIGHTS + 1])
def test_what_all_fits_or_is_more_than_does_not_is_not_tried(
    made: Callable[..., Timed], card: int
) -> None:
    program = made(faster, card=card)
    program.run_on(TRIED)
    assert not program.tried()


@pytest.mark.parametrize(("took", "advice"), [(lambda _: 0, REMOTE), (faster, 0)])
def test_without_times_or_advice_nothing_is_tried(
    made: Callable[..., Timed], took: Took, advice: int
) -> None:
    program = made(took, advice=advice)
    program.run_on(TRIED)
    assert not program.tried()


def test_what_is_used_otherwise_later_is_called_back(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_on(TRIED)
    steps = decoding()
    steps[40], steps[50] = (uses(300 + i, BlockRange(1, 0, CACHE)) for i in range(2))
    program.run_on(4, steps)
    assert program.remote_slots() == CACHE_SLOTS - {1}
    assert program.core.statistics().remote_bytes == (CACHES - 1) * CACHE * UM_BLOCK_BYTES


def test_one_use_at_another_time_is_forgiven(made: Callable[..., Timed]) -> None:
    """A cache is emptied before the next text."""
    program = made(faster)
    program.run_on(TRIED)
    steps = decoding()
    steps.insert(40, uses(300, BlockRange(1, 0, CACHE)))
    program.run_on(1, steps)
    program.run_on(5)
    assert program.remote_slots() == CACHE_SLOTS


def test_iterations_of_another_length_end_a_trial_and_it_begins_anew(
    made: Callable[..., Timed],
) -> None:
    program = made(faster)
    program.run_until_tried()
    longer = [*decoding(), *(weights(i) for i in range(32))]
    program.run_on(3, longer)
    assert not program.remote
    program.run_on(40, longer)
    assert program.remote_slots() == CACHE_SLOTS


def test_lost_events_end_a_trial(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_until_tried()
    program.writer.lost(3)
    for slot, size in enumerate((WEIGHTS, *[CACHE] * CACHES)):
        program.writer.allocate(slot, size, name=1 + slot)
    program.remote.clear()
    program.run_on(60)
    assert program.remote_slots() == CACHE_SLOTS


def test_advice_that_fails_is_not_given_again(made: Callable[..., Timed]) -> None:
    program = made(faster)
    program.run_until_tried()
    first = next(
        command for command in program.commands if command.advice == SET_PREFERRED_LOCATION
    )
    program.writer.moved(first.id, FAILED)
    program.decided()
    assert (
        program.core.statistics().remote_bytes
        == (CACHES * CACHE - first.block_count) * UM_BLOCK_BYTES
    )
    moved = blocks(program.run_on(30), "prefetch")
    assert first.slot in {slot for slot, _ in moved}


def test_smaller_groups_go_first_and_what_they_gained_counts(made: Callable[..., Timed]) -> None:
    """The larger one gains nothing besides."""
    sizes = (WEIGHTS, *[4] * 3, *[CACHE] * 2)
    program = made(faster, card=28, sizes=sizes)
    steps = [weights(i) for i in range(LAUNCHES)]
    for i, size in enumerate(sizes[1:]):
        steps[10 * i + 3] = uses(200 + i, BlockRange(1 + i, 0, size))
    program.run_on(60, steps)
    assert program.remote_slots() == {1, 2, 3}
    given = blocks(program.commands, "advise", SET_PREFERRED_LOCATION)
    assert {slot for slot, _ in given[:12]} == {1, 2, 3}
    assert {slot for slot, _ in given[12:]} == {4, 5}  # and called back


def test_what_clean_copies_pay_is_found_first(made: Callable[..., Timed]) -> None:
    program = made(faster, advice=ALL)
    read = [Step(step.execution, read=step.unknown) for step in decoding()]
    program.run_on(60, read)
    assert program.remote_slots() == CACHE_SLOTS
    began = next(
        command.cause for command in program.commands if command.advice == SET_PREFERRED_LOCATION
    )
    assert blocks([command for command in program.commands if command.cause < began], "drop")


class Torch(Timed):
    """The caches are PyTorch's blocks, of which one segment has all."""

    def __init__(self, took: Took, **settings: int) -> None:
        super().__init__(took, sizes=(WEIGHTS, CACHES * CACHE), **settings)
        self.total = 0
        for i in range(CACHES):
            self.hand_out(i)

    def hand_out(self, i: int, active: bool = True) -> None:
        size = CACHE * UM_BLOCK_BYTES
        self.total += size if active else -size
        self.writer.block(active, 1, i * size, size, self.total)

    def iteration(self, steps: Sequence[Step]) -> list[Command]:
        return super().iteration([in_one_segment(step) for step in steps])


def in_one_segment(step: Step) -> Step:
    return Step(
        step.execution,
        tuple(
            r if r.slot == 0 else BlockRange(1, CACHE * (r.slot - 1), r.count) for r in step.unknown
        ),
    )


def test_pytorchs_tensors_are_told_apart(made: Callable[..., Timed]) -> None:
    program = Torch(faster)
    program.run_on(TRIED)
    assert program.remote == {(1, block) for block in range(CACHES * CACHE)}
    program.hand_out(0, active=False)
    program.hand_out(0)  # another tensor, which may be used otherwise
    program.run_on(2)
    assert program.remote == {(1, block) for block in range(CACHE, CACHES * CACHE)}
    program.agree()


def test_what_is_handed_out_anew_each_iteration_is_not_tried(made: Callable[..., Timed]) -> None:
    program = Torch(faster)
    for _ in range(TRIED):
        program.run_on(1)
        for i in range(CACHES):
            program.hand_out(i, active=False)
            program.hand_out(i)
    assert not program.tried()
    program.agree()
