"""The policy that plans: what it asks for when, what it keeps and what it gives up."""

from __future__ import annotations

import pytest

from deepum.core import (
    BlockRange,
    Core,
    CoreSettings,
    EventWriter,
    LaunchTime,
    Plan,
    PlannedKind,
    PlannedMove,
    PlanPoint,
)
from deepum.core.plan_requests import PlanInput
from deepum.core.planned import Phase, PlannedPolicy
from deepum.core.timeline import Timeline

LAUNCHES, CAPACITY = 40, 32


class FakePlanning:
    """Gives what it is told to."""

    def __init__(self, *answers: Plan | str) -> None:
        self.answers = list(answers)
        self.requests: list[PlanInput] = []
        self._due = False

    def begin(self, asked: PlanInput) -> None:
        self.requests.append(asked)
        self._due = True

    def poll(self) -> Plan | str | None:
        if not self._due:
            return None
        self._due = False
        return self.answers.pop(0)

    def stop(self) -> None:
        self._due = False


class Program:
    """Launches the same iteration over and over on a card that is too small; each launch takes as
    many microseconds as it is told.
    """

    def __init__(
        self, planning: FakePlanning, given: Plan | None = None, capacity: int = CAPACITY
    ) -> None:
        self.core, self.writer = Core(), EventWriter()
        self.writer.device(capacity)
        self.writer.allocate(0, 2 * LAUNCHES, name=1)
        self.start = self.writer.take()
        self.core.process(self.start)
        self.policy = PlannedPolicy(self.core, planning, given)
        self.now = 1
        self.gates = True
        self.follows_plan = given is not None

    def iterate(self, us: int, times: int = 1, first: int = 100, launches: int = LAUNCHES) -> None:
        for _ in range(times):
            for i in range(launches):
                used = self.ranges(i, BlockRange(0, 2 * (i % LAUNCHES), 2))
                sequence = self.writer.execute(
                    first + i, used.get("unknown", ()), read=used.get("read", ())
                )
                self.now += us
                if self.gates:
                    self.writer.waited(0, sequence, 0)
                self.writer.progress(0, sequence, sequence, self.now)
                self.core.process(self.writer.take())
                self.core.take_commands()
                self.policy.poll()
            self.writer.synchronise()
            self.core.process(self.writer.take())

    def ranges(self, launch: int, where: BlockRange) -> dict[str, list[BlockRange]]:
        """What a launch of the iteration does with its memory."""
        return {"unknown": [where]}

    def iterate_until_requests(self, times: int, us: int = 100) -> None:
        """Until so many plans were asked for, and the last is followed."""
        planning = self.policy.planning
        assert isinstance(planning, FakePlanning)
        for _ in range(40):
            if len(planning.requests) == times and self.policy.phase is not Phase.PLANNING:
                return
            self.iterate(us)
        raise AssertionError(f"{len(planning.requests)} plans were asked for")


def plan(count: int = 1) -> Plan:
    moves = [
        PlannedMove(i, PlanPoint.AFTER_LAUNCH, PlannedKind.EVICT, 1, 2 * i, 2) for i in range(count)
    ]
    return Plan(tuple(100 + i for i in range(LAUNCHES)), tuple(moves))


def planned_launches(program: Program) -> int:
    return program.core.statistics().planned_launches


def is_about(program: Program, phase: Phase) -> bool:
    return program.policy.phase is phase


def kept(program: Program) -> list[bool]:
    return [one.kept for one in program.policy.outcomes]


def test_a_plan_with_which_iterations_are_shorter_is_kept_and_another_is_tried() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.iterate_until_requests(1)
    assert is_about(program, Phase.SETTLING)
    asked = planning.requests[0]
    assert asked.recording.launch_count == LAUNCHES and len(asked.times) > 2 * LAUNCHES
    assert 0 < asked.memory_bytes < CAPACITY << 21
    program.iterate_until_requests(2, 90)
    program.iterate(95, 6)
    assert is_about(program, Phase.FOLLOWING) and program.policy.plan == plan(1)
    assert kept(program) == [True, False]
    later = planning.requests[1].times  # of what ran with the first plan
    assert len(later) > 2 * LAUNCHES and later[0].launch > asked.times[-1].launch
    first, second = program.policy.summary()
    assert first["before_us"] == pytest.approx(100 * LAUNCHES)
    assert first["with_us"] < first["before_us"] and first["reason"] is None
    assert second["reason"] == "iterations are not shorter with it"
    before = planned_launches(program)
    program.iterate(90, 2)
    assert planned_launches(program) == before + 2 * LAUNCHES


def test_plans_that_do_not_pay_are_not_followed_and_not_made_again() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.iterate(100, 30)
    assert is_about(program, Phase.STOPPED) and program.policy.plan is None
    assert kept(program) == [False, False] and len(planning.requests) == 2
    before = planned_launches(program)
    program.iterate(100, 10)
    assert planned_launches(program) == before and len(planning.requests) == 2
    assert not program.core.wants_times


def test_a_plan_that_is_clearly_worse_is_given_up_after_an_iteration() -> None:
    program = Program(FakePlanning(plan(1), "there is no other"))
    program.iterate_until_requests(1)
    before = planned_launches(program)
    program.iterate(130, 6)
    assert planned_launches(program) - before <= 3 * LAUNCHES
    assert is_about(program, Phase.STOPPED)
    assert [one.reason for one in program.policy.outcomes] == [
        "iterations are not shorter with it",
        "there is no other",
    ]


def test_a_plan_that_is_far_worse_ends_planning_within_an_iteration_and_a_bit() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.iterate_until_requests(1)
    before = planned_launches(program)
    program.iterate(1000, 3)
    assert planned_launches(program) - before < LAUNCHES // 2
    assert is_about(program, Phase.STOPPED) and len(planning.requests) == 1
    assert program.policy.outcomes[0].reason == "an iteration took over 2 times as long with it"


def test_nothing_is_planned_where_all_fits() -> None:
    planning = FakePlanning()
    program = Program(planning, capacity=2 * LAUNCHES)
    program.iterate(100, 20)
    assert program.core.statistics().iteration_launches == LAUNCHES
    assert is_about(program, Phase.LEARNING) and not planning.requests


def test_times_of_launches_before_any_was_timed_do_not_end_planning() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.gates = False
    for _ in range(10):
        if not program.core.wants_times:
            program.iterate(100)
    assert program.core.wants_times
    program.gates = True
    program.iterate_until_requests(1)
    assert len(planning.requests) == 1


def test_nothing_is_planned_where_launches_do_not_wait_for_their_moves() -> None:
    planning = FakePlanning()
    program = Program(planning)
    program.gates = False
    program.iterate(100, 20)
    assert is_about(program, Phase.STOPPED) and not planning.requests
    assert program.policy.outcomes[0].reason == "launches do not wait for their moves"


def test_a_given_plan_is_followed_from_the_start() -> None:
    program = Program(FakePlanning(), given=plan(2))
    program.iterate(100, 2)
    assert planned_launches(program) == 2 * LAUNCHES
    assert program.policy.plan == plan(2) and kept(program) == [True]


def iterate_with(program: Program, with_plan: int, without: int, times: int) -> None:
    """Launches take so many microseconds with the given plan, and so many without it."""
    for _ in range(times):
        before = planned_launches(program)
        program.iterate(with_plan if program.follows_plan else without)
        program.follows_plan = planned_launches(program) > before


def test_a_given_plan_that_pays_is_kept_after_iterations_without_it() -> None:
    planning = FakePlanning()
    program = Program(planning, given=plan(2))
    iterate_with(program, 90, 100, 20)
    (outcome,) = program.policy.outcomes
    assert outcome.kept and outcome.with_us == pytest.approx(90 * LAUNCHES)
    assert outcome.before_us is not None and outcome.before_us > 95 * LAUNCHES
    assert is_about(program, Phase.FOLLOWING) and program.policy.plan == plan(2)
    assert not planning.requests and not program.core.wants_times
    before = planned_launches(program)
    assert before < 20 * LAUNCHES, "it was tried against doing without"
    program.iterate(90, 3)
    assert planned_launches(program) == before + 3 * LAUNCHES


def test_a_given_plan_that_does_not_pay_gives_way_to_the_programs_own() -> None:
    planning = FakePlanning(plan(1), "no other")
    program = Program(planning, given=plan(2))
    iterate_with(program, 100, 95, 10)
    assert program.policy.plan is None
    first = program.policy.outcomes[0]
    assert not first.kept and first.reason == "iterations are not shorter with it"
    program.iterate_until_requests(1, 95)
    program.iterate(80, 8)
    assert is_about(program, Phase.FOLLOWING) and program.policy.plan == plan(1)
    assert kept(program) == [False, True, False]


def test_doing_without_a_given_plan_ends_at_once_where_it_is_far_worse() -> None:
    program = Program(FakePlanning(), given=plan(2))
    for _ in range(20):
        if is_about(program, Phase.SETTLING):
            break
        program.iterate(100)
    assert is_about(program, Phase.SETTLING)
    program.iterate(1000, 3)
    assert kept(program) == [True] and is_about(program, Phase.FOLLOWING)
    assert planned_launches(program) > 2 * LAUNCHES
    assert program.policy.outcomes[0].reason is None and not program.core.wants_times


def test_a_given_plan_is_not_tried_on_another_iteration() -> None:
    """One that comes first, or while it is tried."""
    program = Program(FakePlanning(), given=plan(2))
    program.iterate(100, 8, first=500, launches=32)
    assert program.policy.plan == plan(2) and is_about(program, Phase.FOLLOWING)
    for _ in range(20):
        if is_about(program, Phase.SETTLING):
            break
        program.iterate(100)
    assert is_about(program, Phase.SETTLING)
    program.iterate(100, 6, first=500, launches=32)
    assert program.policy.plan == plan(2) and is_about(program, Phase.FOLLOWING)
    before = planned_launches(program)
    program.iterate(100, 1)
    assert planned_launches(program) == before + LAUNCHES


def test_a_given_plan_is_tried_where_launches_do_not_wait_for_their_moves() -> None:
    program = Program(FakePlanning(), given=plan(2))
    program.gates = False
    iterate_with(program, 100, 90, 20)
    assert program.policy.plan is None and is_about(program, Phase.STOPPED)
    assert [one.reason for one in program.policy.outcomes] == [
        "iterations are not shorter with it",
        "launches do not wait for their moves",
    ]


def test_an_evaluation_does_not_end_a_plan_and_another_program_does() -> None:
    planning = FakePlanning(plan(1), "no other", "none for this")
    program = Program(planning)
    program.iterate_until_requests(1)
    program.iterate(80, 6)
    assert is_about(program, Phase.FOLLOWING)
    for _ in range(3):
        program.iterate(80, 4, first=500, launches=32)
        program.iterate(80, 3)
    assert program.policy.plan == plan(1)
    before = planned_launches(program)
    program.iterate(80, 1)
    assert planned_launches(program) == before + LAUNCHES
    program.iterate(80, 40, first=500, launches=32)
    assert program.policy.plan is None
    assert planning.requests[-1].recording.launch_count == 32


def test_iterations_are_timed_between_known_launches() -> None:
    timeline = Timeline()
    timeline.extend([LaunchTime(10, 100, 0), LaunchTime(20, 300, 0), LaunchTime(15, 400, 0)])
    timeline.extend([LaunchTime(40, 500, 0)])
    assert timeline.at(15) == 200 and timeline.at(30) == 400
    assert timeline.at(9) is None and timeline.at(41) is None
    assert timeline.iterations(10, 10) == [200.0, 100.0, 100.0]
    assert timeline.iterations(5, 10) == []
    assert timeline.first_from(11) == 20 and timeline.first_from(50) == 50
    assert [time.launch for time in timeline.since(15)] == [20, 40]


def test_the_timeline_keeps_the_latest() -> None:
    timeline = Timeline(most=4)
    timeline.extend(LaunchTime(n, n, 0) for n in range(1, 30))
    assert timeline.latest == 29
    assert timeline.at(1) is None and timeline.at(28) == 28


def test_iterations_are_told_apart_where_known_times_are_close() -> None:
    """Of the launches 10 to 40, 31 lies between the closest two."""
    timeline = Timeline()
    timeline.extend(
        LaunchTime(n, at, 0) for n, at in ((9, 0), (20, 900), (30, 1000), (31, 1010), (32, 1020))
    )
    assert timeline.quietest_from(10, 30) is None
    timeline.extend([LaunchTime(40, 2000, 0), LaunchTime(50, 2001, 0)])
    assert timeline.quietest_from(10, 30) == 31
    assert timeline.quietest_from(40, 30) is None and Timeline().quietest_from(1, 5) is None
    assert timeline.quietest_from(41, 4) == 50  # none is known of these


class Learning(Program):
    """Each iteration, it becomes known of one launch more that it reads only."""

    def __init__(self, planning: FakePlanning, advice: int) -> None:
        super().__init__(planning)
        self.core = Core(CoreSettings.default(advice=advice))
        self.core.process(self.start)
        self.policy = PlannedPolicy(self.core, planning, None)
        self.iterations = 0

    def ranges(self, launch: int, where: BlockRange) -> dict[str, list[BlockRange]]:
        if launch == 0:
            self.iterations += 1
        return {"read" if launch < self.iterations else "unknown": [where]}


def test_an_iteration_is_recorded_anew_while_more_is_known_of_what_it_reads() -> None:
    """Where clean pages may be; elsewhere that changes nothing."""
    measures = {}
    for advice in (0, 3):
        planning = FakePlanning(plan(1), plan(2))
        program = Learning(planning, advice)
        program.iterate_until_requests(1)
        measures[advice] = planning.requests[0].recording.blocks_read, program.iterations
        program.iterate_until_requests(2, 90)
        assert (
            planning.requests[1].recording.blocks_read > planning.requests[0].recording.blocks_read
            or advice
        )
    assert 0 < measures[0][0] < 2 * LAUNCHES
    assert measures[3][0] > measures[0][0] and measures[3][1] > measures[0][1]


def test_the_second_plan_is_made_of_what_ran_with_the_first() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.iterate_until_requests(2, 100)
    first, second = (
        int.from_bytes(asked.recording.launches[8:16], "little") for asked in planning.requests
    )
    assert second > first


def test_with_clean_pages_a_plan_without_duplicates_and_two_with_them_are_tried() -> None:
    """The second is the best: the third is no better, and the first was."""
    planning = FakePlanning(plan(1), plan(2), plan(3))
    program = Learning(planning, 3)
    for plans, us in ((1, 100), (2, 90), (3, 80)):
        program.iterate_until_requests(plans, us)
    program.iterate(80, 6)
    assert [asked.duplicates for asked in planning.requests] == [False, True, True]
    assert is_about(program, Phase.FOLLOWING) and program.policy.plan == plan(2)


def test_without_clean_pages_no_plan_has_duplicates() -> None:
    planning = FakePlanning(plan(1), plan(2))
    program = Program(planning)
    program.iterate_until_requests(2, 90)
    program.iterate(80, 6)
    assert [asked.duplicates for asked in planning.requests] == [False, False] and is_about(
        program, Phase.FOLLOWING
    )
