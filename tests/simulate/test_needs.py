"""What is found in a trace for its bound: the same as where the iteration is known beforehand, and
never more than any policy needs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from small import random_iteration, training

from deepum.core import BlockRange
from deepum.simulate import bound
from deepum.simulate.comparison import compare
from deepum.simulate.needs import Steps, needs
from deepum.simulate.parts import Parts
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.simulate.steps import step_ends
from deepum.simulate.workload import Workload
from deepum.trace import Trace, TraceWriter, g10, work
from deepum.trace.work import READ, REGION_BYTES, WRITE, Access

MIB = 1 << 20
NAMES = (
    "on-demand",
    "deepum-paper",
    "lookahead-8",
    "deepum",
    *(name for name in BY_NAME if name.endswith("-use")),
)
POLICIES = [BY_NAME[name] for name in NAMES]
LINK = bound.Link(64 * MIB, 10.0, 10.0)


def found(trace: Trace) -> Steps | None:
    """Of its steps."""
    outcome = replay(
        trace,
        machine("v100-16gb"),
        BY_NAME["unlimited"].settings(1024),
        1 << 40,
        keep_launches=True,
    )
    return needs(trace, outcome.launches, step_ends(outcome, trace))


@pytest.mark.parametrize("memory", [96, 160, 256])
def test_a_training_steps_bound_is_that_of_its_iteration(tmp_path: Path, memory: int) -> None:
    iteration = training(tmp_path / "training")
    trace = g10.trace(iteration, 9)
    steps = found(trace)
    assert steps is not None
    assert len(steps.gaps) == 9
    for duplicates in (True, False):
        link = bound.Link(memory * MIB, 10.0, 10.0, duplicates)
        known = bound.periodic(bound.of_iteration(iteration), link, periods=4)
        learned = bound.between(steps.works, link, steps.gaps[2], steps.gaps[7])
        assert learned.ns / 5 <= known.ns * (1 + 1e-9)
        assert learned.ns / 5 >= known.ns * 0.93
        assert learned.compute_ns / 5 == pytest.approx(iteration.compute_us * 1e3)


@pytest.mark.parametrize("seed", range(12))
def test_no_policy_is_below_the_bound_of_a_trace(tmp_path: Path, seed: int) -> None:
    trace = g10.trace(random_iteration(tmp_path / "random", seed), 7)
    compared = compare(
        Workload("random", trace, "a100-40gb-g10"), "a100-40gb-g10", POLICIES, 64 * MIB
    )
    assert compared.bound_ns is not None
    assert compared.moving_bound_ns is not None
    for name, row in compared.rows.items():
        if name != "unlimited":
            assert row.ns >= compared.bound_ns * (1 - 1e-9), name
            assert row.ns >= compared.moving_bound_ns * (1 - 1e-9), name


def two_arrays(
    launches: list[tuple[int, int]], forget: bool = False, flags_of_small: int | None = None
) -> bound.Bound:
    """The bound of launches on two arrays of 64 MiB on a card of 64 MiB: (array, flags); each
    launch is a step of 1 us. `forget`: PyTorch takes both blocks back before each.
    `flags_of_small`: of an access of a KiB before each.
    """
    writer = TraceWriter()
    writer.device(1 << 20)
    for slot in range(2):
        writer.allocate(slot, 32)
    for array, flags in launches:
        if forget:
            for slot in range(2):
                writer.block(True, slot, 0, 64 * MIB, 0)
                writer.block(False, slot, 0, 64 * MIB, 0)
        if flags_of_small is not None:
            writer.launch(
                9, [BlockRange(array, 0, 1)], [Access(array, flags_of_small, 5, 1 << 10)], 1.0
            )
        writer.launch(
            array,
            [BlockRange(array, 0, 32)],
            [Access(array, flags, 0, 64 * MIB)],
            1e3,
            ends_step=True,
        )
    steps = found(writer.trace("arrays"))
    assert steps is not None
    return bound.between(steps.works, LINK, steps.gaps[1], steps.gaps[-1])


def test_what_is_read_in_turn_has_to_come_in_turn() -> None:
    moved = 64 * MIB / LINK.in_gbps
    in_turn = [(number % 2, READ | WRITE) for number in range(12)]
    assert two_arrays(in_turn).transfers_ns == pytest.approx(5 * moved), "one of them could stay"
    assert two_arrays([(0, READ | WRITE)] * 12).transfers_ns == 0


def test_what_is_overwritten_dead_or_uncertain_has_not() -> None:
    in_turn = [(number % 2, READ | WRITE) for number in range(12)]
    assert two_arrays([(array, WRITE) for array, _ in in_turn]).transfers_ns == 0
    assert (
        two_arrays(
            [(array, READ | WRITE | work.WRITTEN_FIRST) for array, _ in in_turn]
        ).transfers_ns
        == 0
    )
    assert two_arrays(in_turn, forget=True).transfers_ns == 0
    assert two_arrays(in_turn, flags_of_small=work.PERHAPS).transfers_ns == 0
    assert two_arrays(in_turn, flags_of_small=READ).transfers_ns > 0


def test_what_is_overwritten_in_part_is_needed_still() -> None:
    in_turn = [(number % 2, READ | WRITE) for number in range(12)]
    assert (
        two_arrays(in_turn, flags_of_small=WRITE).transfers_ns == two_arrays(in_turn).transfers_ns
    )


@pytest.mark.parametrize(
    ("parts", "read_between", "needed"), [(64, False, False), (63, False, True), (64, True, True)]
)
def test_parts_that_make_up_all_of_a_region_end_its_content(
    parts: int, read_between: bool, needed: bool
) -> None:
    """An array of one region, and one that fills the card in between; parts of a KiB are written
    one after the other.
    """
    region, room = REGION_BYTES, LINK.memory
    writer = TraceWriter()
    writer.device(1 << 20)
    writer.allocate(0, 1)
    writer.allocate(1, 32)
    one, all_else = [BlockRange(0, 0, 1)], [BlockRange(1, 0, 32)]
    for _ in range(8):
        writer.launch(1, one, [Access(0, READ, 0, region)], 1e3)
        writer.launch(2, all_else, [Access(1, READ, 0, room)], 1e3)
        for part in range(parts):
            if read_between and part == parts // 2:
                writer.launch(1, one, [Access(0, READ, 0, region)], 1.0)
            writer.launch(
                3, one, [Access(0, WRITE, part << 10, 1 << 10)], 1.0, ends_step=part == parts - 1
            )
    steps = found(writer.trace("parts"))
    assert steps is not None
    moved = bound.between(steps.works, LINK, steps.gaps[1], steps.gaps[-1]).transfers_ns
    assert (moved > 0) == needed


def test_a_part_may_lie_in_either_of_two_regions() -> None:
    """A gather's rows are told to lie in 64 KiB from a place on, which need not be where a region
    begins.
    """
    parts = Parts()
    assert parts.written(REGION_BYTES // 2, REGION_BYTES - 1) == []
    assert sorted(parts.written(REGION_BYTES // 2, 1)) == [
        (0, REGION_BYTES),
        (REGION_BYTES, 2 * REGION_BYTES),
    ]


def test_regions_used_in_part_are_not_asked_for() -> None:
    """Arrays that begin and end within a region: of each, what is whole regions has to move."""
    moved = []
    for cut in (0, 1):
        writer = TraceWriter()
        writer.device(1 << 20)
        for slot in range(2):
            writer.allocate(slot, 32)
        for number in range(12):
            slot = number % 2
            writer.launch(
                slot,
                [BlockRange(slot, 0, 32)],
                [Access(slot, READ | WRITE, cut, 64 * MIB - 2 * cut)],
                1e3,
                ends_step=True,
            )
        steps = found(writer.trace("cut"))
        assert steps is not None
        moved.append(
            bound.between(
                steps.works, bound.Link(32 * MIB, 10.0, 10.0), steps.gaps[1], steps.gaps[-1]
            ).transfers_ns
        )
    assert moved[0] - moved[1] == pytest.approx(10 * 2 * REGION_BYTES / LINK.in_gbps)


def test_of_two_streams_nothing_is_said() -> None:
    writer = TraceWriter()
    writer.device(1 << 20)
    writer.allocate(0, 32)
    for number in range(6):
        writer.launch(
            1,
            [BlockRange(0, 0, 32)],
            [Access(0, READ, 0, 64 * MIB)],
            1e3,
            stream=number % 2,
            ends_step=True,
        )
    assert found(writer.trace("streams")) is None


def test_without_work_nothing_is_said(tmp_path: Path) -> None:
    trace = g10.trace(training(tmp_path / "training"), 3)
    assert needs(Trace("bare", trace.events), [], []) is None
