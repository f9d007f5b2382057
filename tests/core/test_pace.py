"""Clean copies are kept where iterations are shorter with them, and only there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from duplicating import Step, blocks, uses
from timed import TimedProgram, Took

from deepum.core import BlockRange, Command, PlannedKind, PlannedMove, PlanPoint

DUPLICATES = ("advise", "copy_out", "drop", "collapse")
# 16 blocks of card and 24 of memory, which are read, written, and gone over once an iteration of 64
# launches.
WEIGHTS = [Step(1 + i, read=(BlockRange(0, 4 * i, 4),)) for i in range(2)]
REST = [uses(100 + i, BlockRange(1, 4 * i, 4)) for i in range(4)]
IDLE = [uses(200 + i, BlockRange(1, 15, 1)) for i in range(58)]
ITERATION = [*WEIGHTS, *REST, *IDLE]
# Iterations by which the trial is over: learning and measuring, settling and measuring, what was
# queued.
ON_DEMAND_OF_TIME = 12 + 3 + 12


class Timed(TimedProgram):
    """What is tried is whether anything leaves without a copy, in the iteration at hand or all
    through the one before.
    """

    def __init__(self, took: Took, **settings: int) -> None:
        super().__init__(took, 16, (8, 16), **settings)
        self.duplicating = False

    def other_way(self) -> bool:
        return self.duplicating

    def decided(self) -> list[Command]:
        made = super().decided()
        self.duplicating |= bool(blocks(made, "drop"))
        return made

    def iteration(self, steps: Sequence[Step] = ITERATION) -> list[Command]:
        made = super().iteration(steps)
        self.duplicating = bool(blocks(made, "drop"))
        return made

    def kinds(self, iterations: int) -> list[set[str]]:
        return [{command.kind for command in self.iteration()} for _ in range(iterations)]


def with_and_without(with_us: int, without_us: int) -> Took:
    return lambda duplicating: with_us if duplicating else without_us


def test_where_iterations_take_longer_with_them_they_are_given_up() -> None:
    made = Timed(with_and_without(110, 100))
    by_iteration = made.kinds(40)
    assert any("drop" in kinds for kinds in by_iteration[3:12])
    assert all(not kinds & set(DUPLICATES) for kinds in by_iteration[ON_DEMAND_OF_TIME:])
    assert all("evict" in kinds for kinds in by_iteration[ON_DEMAND_OF_TIME:])


def test_where_iterations_are_shorter_with_them_they_stay() -> None:
    made = Timed(with_and_without(90, 100))
    by_iteration = made.kinds(40)
    assert any("drop" not in kinds for kinds in by_iteration[12:ON_DEMAND_OF_TIME])  # it was tried
    assert all("drop" in kinds for kinds in by_iteration[ON_DEMAND_OF_TIME:])


@pytest.mark.parametrize(("with_us", "without_us"), [(110, 100), (90, 100)])
def test_faults_are_wanted_until_that_is_known(with_us: int, without_us: int) -> None:
    made = Timed(with_and_without(with_us, without_us))
    wanted = []
    for _ in range(40):
        made.iteration()
        wanted.append(made.core.wants_faults)
    assert all(wanted[:15])
    assert not any(wanted[ON_DEMAND_OF_TIME:])


def test_without_times_they_stay_and_faults_are_not_wanted_for_long() -> None:
    made = Timed(lambda _: 0)
    by_iteration = made.kinds(40)
    assert all("drop" in kinds for kinds in by_iteration[4:])
    assert not made.core.wants_faults


def test_where_nothing_is_duplicated_nothing_is_tried_and_no_faults_are_wanted() -> None:
    made = Timed(with_and_without(100, 100))
    made.writer.device(64)  # all fits
    for _ in range(20):
        assert not {command.kind for command in made.iteration()} & set(DUPLICATES)
    assert not made.core.wants_faults


def test_once_there_is_pressure_they_are_tried_however_late_it_comes() -> None:
    made = Timed(with_and_without(110, 100))
    made.writer.device(26)
    made.kinds(30)
    made.writer.allocate(2, 16)
    more = [*ITERATION, *(uses(300 + i, BlockRange(2, 4 * i, 4)) for i in range(4))]
    by_iteration = [{command.kind for command in made.iteration(more)} for _ in range(60)]
    assert any("drop" in kinds for kinds in by_iteration)
    assert all(not kinds & set(DUPLICATES) for kinds in by_iteration[50:])


def test_iterations_of_another_length_are_tried_anew() -> None:
    made = Timed(with_and_without(110, 100))
    made.kinds(8)
    longer = [*ITERATION, *IDLE]
    by_iteration = [{command.kind for command in made.iteration(longer)} for _ in range(60)]
    assert any("drop" in kinds for kinds in by_iteration[9:])
    assert all(not kinds & set(DUPLICATES) for kinds in by_iteration[50:])


def test_times_that_go_back_are_counted_anew() -> None:
    made = Timed(with_and_without(110, 100))
    made.kinds(13)
    made.now = 500  # a context of the program's ended
    by_iteration = made.kinds(60)
    assert all(not kinds & set(DUPLICATES) for kinds in by_iteration[50:])


@pytest.mark.parametrize(("with_us", "without_us"), [(110, 100), (90, 100), (100, 100)])
def test_the_plain_core_decides_the_same(with_us: int, without_us: int) -> None:
    made = Timed(with_and_without(with_us, without_us))
    made.kinds(40)
    made.agree()


def followed_launches(made: Timed, moves: list[PlannedMove], iterations: int) -> list[int]:
    """By iteration under that plan, at how many launches it was followed."""
    made.core.follow_plan([step.execution for step in ITERATION], moves)
    counts = [made.core.statistics().planned_launches]
    for _ in range(iterations):
        made.iteration()
        counts.append(made.core.statistics().planned_launches)
    return [b - a for a, b in itertools.pairwise(counts)]


WEIGHTS_NAME = 1  # of the first allocation
DUPLICATES_WEIGHTS = [
    PlannedMove(2, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, WEIGHTS_NAME, 0, 8),
    PlannedMove(20, PlanPoint.AFTER_LAUNCH, PlannedKind.DUPLICATE, WEIGHTS_NAME, 0, 8),
]


@pytest.mark.parametrize(
    ("without_us", "last"), ((100, 0), (130, len(ITERATION))), ids=("worse", "better")
)
def test_a_plan_that_copies_is_followed_only_while_clean_pages_pay(
    without_us: int, last: int
) -> None:
    made = Timed(with_and_without(110, without_us))
    made.kinds(4)
    counts = followed_launches(made, DUPLICATES_WEIGHTS, 40)
    assert counts[1] == len(ITERATION)
    assert 0 in counts  # it was tried
    assert set(counts[ON_DEMAND_OF_TIME + 3 :]) == {last}


def test_a_plan_that_only_moves_is_followed_all_the_same() -> None:
    made = Timed(with_and_without(110, 100))
    made.kinds(4)
    assert set(followed_launches(made, DUPLICATES_WEIGHTS[:1], 40)[1:]) == {len(ITERATION)}


def test_while_an_iteration_is_recorded_or_the_recording_kept_nothing_is_tried() -> None:
    made = Timed(with_and_without(110, 100))
    made.kinds(4)
    made.core.record(len(ITERATION))
    assert all("drop" in kinds for kinds in made.kinds(40))
    made.core.record(0)
    assert not any("drop" in kinds for kinds in made.kinds(40)[-5:])
