"""What leaves: the cheap before the dear, nothing above the price, nothing that was just used; and
the price that trials find.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from recomputing import MIB, Followed, Made, training

from deepum.errors import UsageError
from deepum.recomputation.account import disagreement
from deepum.recomputation.joined import MOST_STEPS, Joined
from deepum.recomputation.tape import Tape
from deepum.rematerialise.soft import SoftEngine
from deepum.rematerialise.trials import ALONE, BUDGETS, MOST, PRICES, Search, Setting, Trial
from deepum.simulate.comparison import compare
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.recomputed import Recomputing
from deepum.simulate.replay import machine, replay
from deepum.simulate.steps import steady, steps
from deepum.simulate.workload import Workload
from deepum.trace import Trace

LAYERS, MIB_EACH = 6, 8
PEAK = (2 * LAYERS + 2) * MIB_EACH * MIB + LAYERS * 2 * MIB


def again(budget: int, price: float = math.inf, window: int = 0) -> tuple[int, int, int]:
    """Launches again a step, ns of one of them, and the peak."""
    found = Followed(
        training(LAYERS, 3, MIB_EACH),
        lambda backend: SoftEngine(budget, backend, price, window=window, sampling=False),
    )
    assert disagreement(found.original, found.trace) is None
    count, counters = found.backend.launches, found.engine.counters
    return count // 3, int(counters.recomputed_ns) // max(count, 1), counters.peak_bytes


def test_the_cheap_ones_leave_and_no_more_than_has_to() -> None:
    assert again(PEAK)[0] == 0
    count, ns, peak = again(PEAK - 3 * MIB_EACH * MIB)
    assert 3 <= count <= 4
    assert ns == 50_000, "activations alone, not products, which take 20 times as long"
    assert peak <= PEAK - 3 * MIB_EACH * MIB


def test_nothing_is_computed_again_above_the_price() -> None:
    budget = PEAK // 3
    a_byte = 50_000 / (MIB_EACH * MIB)
    assert again(budget, 0.5 * a_byte)[0] == 0
    assert again(budget, 1.5 * a_byte)[1] <= 50_000
    count, ns, _ = again(budget, 40 * a_byte)
    assert count > LAYERS
    assert ns > 50_000, "products as well"


def test_what_was_just_used_stays() -> None:
    budget = PEAK // 3
    assert again(budget, window=10 * PEAK)[0] == 0
    assert 0 < again(budget, window=PEAK // 4)[0] < again(budget)[0]


def tried(times: dict[Setting, float]) -> tuple[list[Setting], Setting]:
    """Settings in the order in which they are tried, and the one that is kept."""
    search = Search()
    while (setting := search.next()) is not None:
        search.trials.append(Trial(setting, times.get(setting, 100.0)))
        assert len(search.trials) <= MOST, "it comes to an end"
    return [trial.setting for trial in search.trials], search.best.setting


def test_prices_are_tried_up_then_down_then_budgets() -> None:
    up = {ALONE: 200.0, Setting(2): 100.0, Setting(3): 90.0, Setting(4): 80.0}
    assert tried(up | {Setting(4, 2): 70.0, Setting(4, 3): 75.0}) == (
        [ALONE, Setting(2), Setting(3), Setting(4), Setting(4, 2), Setting(4, 3)],
        Setting(4, 2),
    )
    down = {ALONE: 200.0, Setting(2): 100.0, Setting(3): 110.0, Setting(1): 90.0, Setting(0): 95.0}
    order, best = tried(down | {Setting(1, 2): 91.0, Setting(1, 0): 85.0})
    assert order[:5] == [ALONE, Setting(2), Setting(3), Setting(1), Setting(0)]
    assert order[5:] == [Setting(1, 2), Setting(1, 0)], "a larger budget where a smaller is worse"
    assert best == Setting(1, 0)
    assert (len(PRICES), len(BUDGETS)) == (5, 4)


def test_moving_alone_is_kept_unless_something_is_better() -> None:
    assert tried({ALONE: 100.0, Setting(2): 99.8})[1] == ALONE
    assert tried({ALONE: 100.0, Setting(2): 99.0})[1] == Setting(2)


def test_another_setting_begins_with_an_empty_cache_and_empties_it_of_what_lived_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: list[float] = [0.0]
    emptied: list[int] = []
    monkeypatch.setattr(Tape, "empty_cache", lambda self: emptied.append(len(settings)))

    def set_price(self: SoftEngine, price: float, budget: int) -> None:
        settings.append(price)

    monkeypatch.setattr(SoftEngine, "set", set_price)
    joined = Joined(MIB, 0.1, lambda step: 1e9 * (step + 1))
    joined.counters.peak_bytes = 2 * MIB
    for number in range(MOST_STEPS):
        joined.begin(number)
    changed = [at for at in range(1, MOST_STEPS) if settings[at] != settings[at - 1]]
    assert changed == [7, 11, 15, 19], "three settings are no better, and moving alone is kept"
    assert emptied == [7, 8, 11, 12, 15, 16, 19, 20]


def workload(made: Made) -> Workload:
    return Workload("made", made.trace(), "v100-16gb")


def test_joined_with_moving_it_is_faster_than_either() -> None:
    """A card for half of it, whose link takes far longer than a cheap launch does."""
    found = compare(
        workload(training(12, MOST_STEPS + 4, 32, 10**6)),
        "v100-16gb",
        [BY_NAME[name] for name in ("deepum", "remat", "remat-alone")],
        480 * MIB,
        warm_up=MOST_STEPS,
    )
    moving, joined, alone = (found.rows[name].ns for name in ("deepum", "remat", "remat-alone"))
    assert joined < 0.8 * moving
    assert joined < 1.02 * alone


def test_a_program_is_told_when_the_gpu_was_through_with_its_steps() -> None:
    made = workload(training(12, 8, 32, 10**6))
    times_of_ends: list[list[float]] = []

    class Asking(Recomputing):
        def chunks(self, ended: Callable[[int], float]) -> Iterator[tuple[bytes, bytes]]:
            for number, chunk in enumerate(super().chunks(ended)):
                times_of_ends.append([ended(step) for step in range(number + 1)])
                yield chunk

    program = Asking(made, {}, 480 * MIB, 0.1)
    settings = BY_NAME["remat"].settings(1024)
    outcome = replay(program, machine("v100-16gb"), settings, 480 * MIB)
    ends = [mark.ns for mark in outcome.marks if mark.kind == "step"]
    for number, times in enumerate(times_of_ends):
        assert math.isnan(times[number]), "it is not launched"
        known = [at for at in times if not math.isnan(at)]
        assert known == ends[: len(known)], "as it is at the end of the run"
    assert len(times_of_ends) == 9 and not math.isnan(times_of_ends[-1][4])


def test_where_nothing_is_gained_it_is_as_fast_as_moving_alone() -> None:
    """Launches that take far longer than the link."""
    found = compare(
        workload(training(8, MOST_STEPS + 4, 8, 40 * 10**6)),
        "v100-16gb",
        [BY_NAME["deepum"], BY_NAME["remat"]],
        96 * MIB,
        warm_up=MOST_STEPS,
    )
    assert found.rows["remat"].ns <= 1.005 * found.rows["deepum"].ns


def test_a_step_without_memory_pressure_is_as_it_was() -> None:
    made = workload(training(4, 8))
    for name in ("deepum", "remat"):
        outcome = run(made, "v100-16gb", BY_NAME[name])
        assert outcome.core.launches == 4 + 8 * (2 + 3 * 4)
        assert len(steady(steps(outcome, made.trace))) == 4


def test_what_cannot_be_followed_is_refused() -> None:
    made = training(2, 5)
    trace = made.trace()
    unknown = Workload("unknown", Trace("unknown", trace.events), "v100-16gb")
    with pytest.raises(UsageError, match="does not tell where its steps end; leave out"):
        run(unknown, "v100-16gb", BY_NAME["remat"])
