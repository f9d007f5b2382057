"""The iteration is found from launches and waits alone, held through odd launches, dropped, and
found again; the native detector says what the plain-Python one says, launch by launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from detecting import (
    FORGET,
    WAIT,
    Happening,
    State,
    changes,
    compiled,
    expected,
    kernels,
    layers,
    native_states,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepum.core import BlockRange, Core, CoreSettings, EventWriter

Follow = Callable[[Sequence[Happening]], list[State]]
STEP = kernels(1000, 300)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("detector"))


@pytest.fixture
def follow(program: Path) -> Follow:
    def states(happenings: Sequence[Happening]) -> list[State]:
        native = native_states(program, happenings)
        assert native == expected(happenings)
        return native

    return states


def test_a_step_is_found_when_it_has_come_twice(follow: Follow) -> None:
    states = follow([*kernels(1, 77), *(5 * STEP)])
    assert changes(states) == [(77 + 2 * 300, 300)]
    assert states[-1] == (300, 299, False, True, 5)


def test_it_begins_behind_the_wait(follow: Follow) -> None:
    step = [*STEP[:100], WAIT, *STEP[100:]]
    states = follow([*kernels(1, 33), *(6 * step)])
    assert changes(states) == [(33 + 600, 300)]
    begins = [number for number, state in enumerate(states) if state.begins]
    assert begins == [33 + 100 + 300 * step for step in (2, 3, 4, 5)]
    assert all(states[at].position == 0 for at in begins)
    assert states[-1].iterations == 5  # from the first wait to the last


def test_positions_count_on_and_stay(follow: Follow) -> None:
    states = follow([*(6 * [*STEP, WAIT])])[600:]
    assert [state.position for state in states] == 4 * list(range(300))
    assert all(state.as_expected for state in states)


@pytest.mark.parametrize("wait", (True, False))
def test_layers_are_no_iteration(follow: Follow, wait: bool) -> None:
    forward, backward = layers(48, 20, 10), layers(48, 30, 100)
    step: list[Happening] = [
        1,
        *forward,
        2,
        *backward,
        *kernels(500, 50),
        *([WAIT] if wait else []),
    ]
    length = 1 + 960 + 1 + 1440 + 50
    states = follow(8 * step)
    assert changes(states) == [(2 * length, length)]
    assert states[-1].iterations == 8


def test_layers_on_memory_of_their_own_are_none_however_many(follow: Follow) -> None:
    assert not changes(follow(layers(300, 20, 10, named=True)))
    assert changes(follow(layers(300, 20, 10))) == [(20 + 64 * 20, 20)]


def test_tensors_that_take_turns_do_not_hide_an_iteration_that_waits(follow: Follow) -> None:
    """Each launch is on other memory than in the iteration before; so are layers, without waits."""
    turns: list[Happening] = []
    for step in range(8):
        turns += [(10 + i, 1_000_000 * (1 + step % 2) + i) for i in range(60)]
        turns.append(WAIT)
    found = changes(follow(turns))
    assert [period for _, period in found] == [60]
    loading: list[Happening] = []
    for layer in range(90):
        loading += [(7, layer), (8, 100 + layer), WAIT]
    assert not changes(follow(loading))


def test_a_short_step_with_a_wait_in_each_is_found_soon(follow: Follow) -> None:
    step = [*kernels(1, 24), WAIT]
    assert changes(follow(20 * step)) == [(24 + 32, 24)]


def test_what_was_found_before_a_longer_one_is_no_iteration_of_it(follow: Follow) -> None:
    loading = 10 * [*kernels(5000, 14), WAIT]
    states = follow([*loading, *kernels(6000, 40), *(12 * [*STEP, WAIT])])
    assert [period for _, period in changes(states)] == [14, 0, 300]
    counts = [state.iterations for state in states]
    assert counts == sorted(counts)
    assert (counts[10 * 14], counts[-1]) == (10, 12)


def test_as_much_of_something_else_stays_counted(follow: Follow) -> None:
    other = [*kernels(5000, 200), WAIT]
    states = follow([*(4 * other), *kernels(6000, 40), *(6 * [*STEP, WAIT])])
    assert [period for _, period in changes(states)] == [200, 0, 300]
    assert states[-1].iterations == 4 + 6


def test_a_step_that_logs_every_second_time_is_found_as_two(follow: Follow) -> None:
    """Steps begin with launches that are all alike, so that one more before them is hardly seen."""
    step = [*(24 * [1]), *kernels(10, 14), *layers(24, 3, 2), *kernels(100, 8)]
    states = follow([*kernels(1000, 30), *(12 * [*step, *step, 999, WAIT])])
    assert [period for _, period in changes(states)] == [2 * len(step) + 1]
    assert states[-1].iterations == 12


def test_a_step_that_is_never_the_same_is_not_found(follow: Follow) -> None:
    assert not changes(
        follow(
            [at + 1000 * (step if at % 20 == 0 else 0) for step in range(20) for at in range(300)]
        )
    )


def test_a_few_launches_that_always_differ_are_borne(follow: Follow) -> None:
    """As attention to a cache that grows does."""
    differs = {50, 100, 150, 200}
    states = follow(
        [at + 1000 * (step if at in differs else 0) for step in range(9) for at in range(300)]
    )
    assert changes(states) == [(900, 300)]
    assert states[-1].iterations == 9
    assert sum(not state.as_expected for state in states[900:]) == 6 * len(differs)


ODD: dict[str, Callable[[list[Happening]], list[Happening]]] = {
    "one left out": lambda step: step[:40] + step[41:],
    "two left out": lambda step: step[:40] + step[42:],
    "one added": lambda step: [*step[:40], 7, *step[40:]],
    "two added": lambda step: [*step[:40], 7, 8, *step[40:]],
    "one different": lambda step: [*step[:40], 7, *step[41:]],
    "two different": lambda step: [*step[:40], 7, 8, *step[42:]],
    "two for one": lambda step: [*step[:40], 7, 8, *step[41:]],
    "the first left out": lambda step: step[1:],
    "the last left out": lambda step: step[:-1],
    "the last two different": lambda step: [*step[:-2], 7, 8],
    "one here and there": lambda step: [*step[:40], 7, *step[41:80], *step[81:120], 9, *step[120:]],
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_launches_are_borne(follow: Follow, odd: str) -> None:
    step = [*STEP, WAIT]
    happenings = [*(4 * step), *ODD[odd](STEP), WAIT, *(3 * step)]
    states = follow(happenings)
    assert changes(states) == [(601, 300)]
    assert states[-1] == (300, 299, False, True, 8)
    assert [state.position for state in states[-900:]] == 3 * list(range(300))


@pytest.mark.parametrize("odd", [name for name in ODD if "the last" not in name])
def test_what_is_odd_twice_in_a_row_is_a_part_of_the_step(follow: Follow, odd: str) -> None:
    changed = [*ODD[odd](STEP), WAIT]
    states = follow([*(4 * [*STEP, WAIT]), *(5 * changed)])
    assert all(state.period for state in states[601:])
    assert states[-1].period == len(changed) - 1
    assert all(state.as_expected for state in states[-3 * (len(changed) - 1) :])
    assert states[-1].iterations == 9


def test_the_third_in_a_row_drops_the_pattern(follow: Follow) -> None:
    states = follow([*(4 * STEP), *STEP[:40], 7, 8, 9, *STEP[43:], *(2 * STEP)])
    assert changes(states) == [(600, 300), (1243, 0), (1800, 300)]


def test_more_odd_ones_than_a_32nd_drop_it(follow: Follow) -> None:
    step = list(STEP)
    for number, at in enumerate(range(20, 250, 23)):
        step[at] = 10 + number
    states = follow([*(4 * STEP), *step, *(2 * STEP)])
    assert changes(states)[:2] == [(600, 300), (1200 + 20 + 9 * 23 + 2, 0)]
    assert states[-1].period == 300


@pytest.mark.parametrize("wait", (True, False))
def test_evaluation_every_tenth_step(follow: Follow, wait: bool) -> None:
    end: list[Happening] = [WAIT] if wait else []
    training, evaluation = [*STEP, *end], [*kernels(5000, 90), *end]
    epoch = [*(10 * training), *(3 * evaluation)]
    states = follow([*kernels(1, 20), *(2 * epoch), *(3 * training)])
    length = 3000 + 270
    assert changes(states)[:4] == [
        (20 + 600 + (1 if wait else 0), 300),
        (20 + 3000 + 3, 0),
        (20 + length + 300, 300),  # the first step of the next epoch
        (20 + length + 3000 + 3, 0),
    ]
    if wait:  # else the epoch is what repeats, by now
        assert states[-1] == (300, 299, False, True, 10 + 10 + 3)


def test_a_longer_last_batch(follow: Follow) -> None:
    last = kernels(7000, 310)
    epoch = [*(6 * [*STEP, WAIT]), *last, WAIT]
    states = follow(4 * epoch)
    assert {state.period for state in states} == {0, 300}
    assert states[-1].iterations == 4 * 6


def test_phases_that_alternate_are_both_kept(follow: Follow) -> None:
    one, other = [*STEP, WAIT], [*kernels(5000, 200), WAIT]
    states = follow(3 * [*(5 * one), *(5 * other)])
    assert [period for _, period in changes(states)][:8] == [300, 0, 200, 0, 300, 0, 200, 0]
    again = [number for number, period in changes(states) if period == 200][1]
    assert again == 2 * 1500 + 1000 + 200


def test_the_longest_iteration(follow: Follow, program: Path) -> None:
    longest = kernels(1, 65536)
    states = native_states(program, [*longest, *longest, *longest])
    assert changes(states) == [(2 * 65536, 65536)]
    assert states[-1].iterations == 3
    longer = kernels(1, 65537)
    assert not changes(native_states(program, [*longer, *longer, *longer]))


def test_long_programs_are_remembered_in_part(program: Path) -> None:
    new = kernels(1, 300_000)
    states = native_states(program, [*new, *(4 * STEP), *kernels(400_000, 300_000), *(2 * STEP)])
    assert changes(states) == [(300_600, 300), (301_203, 0), (601_500, 300)]


def test_after_forgetting_the_search_begins_anew(follow: Follow) -> None:
    states = follow([*(4 * STEP), FORGET, *(4 * STEP)])
    assert changes(states) == [(600, 300), (1201, 0), (1800, 300)]
    assert states[-1].iterations == 8


@st.composite
def programs(draw: st.DrawFn) -> list[Happening]:
    """Steps of layers, some odd, with phases between and now and then a wait."""
    rng = draw(st.randoms(use_true_random=False))
    happenings: list[Happening] = []
    phases = [
        [
            rng.choice(((launch, launch), (launch, launch + 100 * layer)))
            for layer in range(rng.randint(1, 6))
            for launch in rng.choices(range(rng.choice((3, 40))), k=rng.randint(2, 40))
        ]
        for _ in range(rng.randint(1, 3))
    ]
    for _ in range(rng.randint(1, 8)):
        phase = rng.choice(phases)
        waits, odd = rng.random() < 0.6, rng.choice((0, 0, 0.004, 0.02))
        for _ in range(rng.randint(1, 12)):
            for launch in phase:
                if rng.random() < odd:
                    happenings += rng.choices(range(50), k=rng.randint(0, 3))
                else:
                    happenings.append(launch)
            if waits:
                happenings.append(WAIT)
        if rng.random() < 0.05:
            happenings.append(FORGET)
        if rng.random() < 0.2:
            phase[rng.randrange(len(phase))] = (77, 77)
    return happenings


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(happenings=programs())
def test_random_programs(program: Path, happenings: list[Happening]) -> None:
    native = native_states(program, happenings)
    assert native == expected(happenings)
    counts = [state.iterations for state in native]
    assert counts == sorted(counts)
    assert all(0 <= state.position < max(1, state.period) for state in native)


def counted(core: Core) -> tuple[int, int]:
    statistics = core.statistics()
    return statistics.iterations, statistics.iteration_launches


@pytest.mark.parametrize("policy", (0, 1))
def test_the_core_counts(policy: int) -> None:
    core, writer = Core(CoreSettings.default(policy=policy)), EventWriter()
    writer.device(64)
    writer.allocate(0, 40)
    for _ in range(7):
        for launch in range(40):
            writer.execute(launch, [BlockRange(0, launch, 1)])
        writer.synchronise()
    core.process(writer.take())
    assert counted(core) == (7, 40)
    writer.lost(1)
    core.process(writer.take())
    assert counted(core) == (7, 0)
