"""The choice among settings by the steps of a program, which is a function here."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from deepum.rematerialise.choice import FIRST, SETTLE, Choice, Step, most_steps
from deepum.rematerialise.trials import ALONE, BUDGETS, PRICES, Setting

GIB = 1 << 30
MEASURED = 3
Time = Callable[[Setting, int], float]  # ns of a step by its number


class Program:
    """late: steps behind which a step's time is known. work: bytes of a step by its number.
    measured: steps of a trial that count.
    """

    def __init__(
        self,
        time: Time,
        peak: int = 2 * GIB,
        late: int = 0,
        work: Callable[[int], int] = lambda _: 1000,
        measured: int = MEASURED,
    ) -> None:
        self.time, self.peak, self.late, self.work = time, peak, late, work
        self.link_queries = 0
        self.waits = 0
        self.choice = Choice(GIB, self._link, measured)
        self.settings: list[Setting] = []
        self._waiting: list[tuple[Step, float]] = []
        self._number = 0

    def _link(self) -> float:
        self.link_queries += 1
        return 0.1

    def _tell(self, late: int) -> None:
        """Times of all but the last steps."""
        while len(self._waiting) > max(late, 0):
            known, ns = self._waiting.pop(0)
            known.ns = ns

    def run(self, steps: int) -> Program:
        for _ in range(steps):
            number, self._number = self._number, self._number + 1
            self._tell(self.late - 1)
            if (awaited := self.choice.awaited) is not None:
                self.waits += 1
                while awaited.ns is None:
                    self._tell(len(self._waiting) - 1)
            step = Step(self.work(number), self.peak)
            self.settings.append(self.choice.setting)
            self._waiting.append((step, self.time(self.choice.setting, number)))
            self._tell(self.late)
            before = self.choice.setting
            assert self.choice.end(step) == (self.choice.setting != before)
        return self


def best_at(price: int | None, budget: int = ALONE.budget) -> Time:
    """Steps that are shortest with one setting, and longer the farther one is from it."""

    def time(setting: Setting, _: int) -> float:
        if setting.price is None or price is None:
            return 100.0 if setting.price is None else 150.0
        return 50.0 + 10 * abs(setting.price - price) + 5 * abs(setting.budget - budget)

    return time


MOST = most_steps(MEASURED)


@pytest.mark.parametrize("late", [0, 1, 30])
@pytest.mark.parametrize("price", range(len(PRICES)))
@pytest.mark.parametrize("budget", range(len(BUDGETS)))
def test_the_best_setting_is_found_and_kept(price: int, budget: int, late: int) -> None:
    program = Program(best_at(price, budget), late=late).run(MOST + 60)
    assert program.choice.setting == Setting(price, budget)
    assert program.choice.outcome == "recompute"
    assert program.choice.decided <= MOST
    assert (program.waits > 0) == (late > 1)
    assert program.choice.price == PRICES[price] * 0.1
    assert program.choice.budget == int(BUDGETS[budget] * GIB)
    assert program.link_queries == 1
    assert len(set(program.settings[-40:])) == 1


def test_moving_alone_is_kept_where_nothing_is_better_by_half_a_percent() -> None:
    program = Program(lambda setting, _: 100.0 if setting == ALONE else 99.6).run(MOST)
    assert program.choice.outcome == "move" and program.choice.setting == ALONE


def test_what_was_tried_twice_is_kept_though_what_was_tried_once_seems_better() -> None:
    """Where each trial once more is a little slower, there are more good settings than trials."""
    tried: list[Setting] = []

    def time(setting: Setting, _: int) -> float:
        if not tried or tried[-1] != setting:
            tried.append(setting)
        return best_at(3)(setting, 0) * (1.25 if tried.count(setting) > 1 else 1.0)

    program = Program(time).run(MOST)
    unconfirmed = [one for one in program.choice.trials if one.times == 1]
    assert program.choice.outcome == "recompute"
    kept = next(one for one in program.choice.trials if one.setting == program.choice.setting)
    assert kept.times > 1 and min(one.ns for one in unconfirmed) < kept.ns


def test_nothing_is_tried_where_all_fits() -> None:
    program = Program(best_at(2), peak=int(0.87 * GIB)).run(100)
    assert program.choice.outcome == "fits" and program.link_queries == 0
    assert set(program.settings) == {ALONE} and not program.choice.trials


def test_a_program_that_grows_is_looked_at_then_and_once_more() -> None:
    program = Program(best_at(2), peak=GIB // 2).run(50)
    program.peak = 2 * GIB
    program.run(MOST)
    assert program.choice.setting == Setting(2)
    program.time, program.peak = best_at(None), 3 * GIB
    program.run(MOST)
    assert program.choice.outcome == "move"
    program.run(30)
    assert set(program.settings[-30:]) == {ALONE}


def test_what_grows_while_settings_are_tried_is_not_looked_at_again() -> None:
    program = Program(best_at(2), peak=2 * GIB).run(FIRST + 10)
    program.peak = 3 * GIB
    program.run(2 * MOST)
    assert program.choice.decided <= MOST and program.choice.setting == Setting(2)


def test_a_setting_that_becomes_worse_than_moving_alone_was_is_given_up() -> None:
    program = Program(best_at(2)).run(MOST)
    assert program.choice.setting == Setting(2)
    program.time = lambda setting, _: 100.0 if setting == ALONE else 200.0
    program.run(3 * MOST)
    assert program.choice.setting == ALONE


def test_evaluation_between_steps_is_more_work_and_no_slower_step() -> None:
    def work(number: int) -> int:
        return 4000 if number % 4 == 0 else 1000

    right = best_at(3)
    program = Program(lambda setting, number: right(setting, number) * work(number) / 1000)
    program.work = work
    program.run(MOST + 10)
    assert program.choice.setting == Setting(3)


@pytest.mark.parametrize("seed", range(30))
def test_irregular_steps_are_not_harmed(seed: int) -> None:
    """Recomputation makes steps a fifth longer here, less than they vary."""
    drawn = random.Random(seed)
    noise = [drawn.uniform(0.6, 1.4) for _ in range(600)]
    program = Program(lambda setting, n: noise[n] * (100.0 if setting == ALONE else 120.0))
    program.run(600)
    recomputed = sum(setting != ALONE for setting in program.settings)
    assert recomputed < 200


def test_one_slow_step_of_moving_alone_decides_nothing() -> None:
    slow = {FIRST + SETTLE, FIRST + SETTLE + 1}

    def time(setting: Setting, number: int) -> float:
        if setting == ALONE:
            return 300.0 if number in slow else 100.0
        return 101.0

    program = Program(time).run(MOST)
    assert program.choice.outcome == "move"


@pytest.mark.parametrize("kept", [True, False])
def test_steps_of_moving_alone_that_alternate_count_by_their_mean(kept: bool) -> None:
    def time(setting: Setting, number: int) -> float:
        if setting == ALONE:
            return (94.0, 106.0)[number % 2]
        return 99.0 if kept else 100.0

    program = Program(time, measured=2).run(most_steps(2))
    assert program.choice.outcome == ("recompute" if kept else "move")


def test_what_was_best_has_to_be_better_once_more() -> None:
    """One step counts of each trial, and luck has passed when the setting is tried again."""

    def luck(setting: Setting, number: int) -> float:
        return 90.0 if setting == Setting(2) and number < 9 else 100.0

    program = Program(luck, measured=1).run(most_steps(1))
    assert program.choice.outcome == "move"
    assert program.settings.count(Setting(2)) == 2 * (SETTLE + 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_choice_is_made_whatever_steps_take(seed: int) -> None:
    drawn = random.Random(seed)
    program = Program(lambda setting, _: drawn.uniform(50, 100), late=1, measured=1)
    assert program.run(most_steps(1)).choice.decided > 0


def test_what_is_learned_meanwhile_counts_for_moving_alone() -> None:
    """Moving alone becomes faster with time: a win over what it was at first is none."""
    program = Program(lambda setting, n: (200.0 if n < 20 else 90.0) if setting == ALONE else 100.0)
    program.run(MOST)
    assert program.choice.outcome == "move"
