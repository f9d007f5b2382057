"""A card that is believed to hold more than it does."""

from __future__ import annotations

from functools import cache

import pytest
from click.testing import CliRunner

from deepum.cli.simulate import command
from deepum.core import UM_BLOCK_BYTES, BlockRange
from deepum.simulate.driver import Driver
from deepum.simulate.policies import BY_NAME
from deepum.simulate.policy_run import run
from deepum.simulate.replay import Outcome
from deepum.simulate.workload import Workload
from deepum.trace import Trace, TraceWriter, work

LAYERS, WIDTH = 320, 4  # UM blocks of a layer
CARD = LAYERS * WIDTH * 3 // 4 * UM_BLOCK_BYTES
ERROR = CARD // 16  # more than what is kept free
STEPS = 16


def training() -> Trace:
    """Each layer has memory of its own, which PyTorch's allocator asks for when it first needs it;
    the launches' queue holds them all.
    """
    writer = TraceWriter()
    writer.device(CARD // UM_BLOCK_BYTES)

    def launch(execution: int, slot: int, flags: int) -> None:
        where = BlockRange(slot, 0, WIDTH)
        writer.launch(
            execution, [where], [work.Access(slot, flags, 0, WIDTH * UM_BLOCK_BYTES)], 6e5, 0
        )

    for step in range(STEPS):
        for layer in range(LAYERS):
            if step == 0:
                writer.allocate(layer, WIDTH)
            if step == 0 and layer == LAYERS // 4:
                writer.synchronise()  # as a program does whose weights are there
            launch(100 + layer, layer, work.WRITE)
        for layer in reversed(range(LAYERS)):
            launch(200 + layer, layer, work.READ)
        writer.end_step()
    return writer.trace("capacity")


@cache
def outcome(policy: str, error: int, tells: bool = True) -> Outcome:
    workload = Workload("capacity", training(), "v100-16gb")
    return run(
        workload,
        "v100-16gb",
        BY_NAME[policy],
        CARD,
        driver=Driver(capacity_error=error, tells_free_memory=tells),
    )


def later_steps(found: Outcome) -> float:
    """Of the last quarter, ns."""
    ends = [mark.ns for mark in found.marks if mark.kind == "step"]
    return ends[-2] - ends[len(ends) * 3 // 4]


@pytest.mark.parametrize("error", [ERROR, 2 * ERROR])
def test_free_memory_corrects_it_before_anything_is_lost(error: int) -> None:
    right, corrected, wrong = (
        outcome("deepum", size, tells) for size, tells in ((0, True), (error, True), (error, False))
    )
    assert later_steps(corrected) <= 1.03 * later_steps(right)
    assert later_steps(wrong) > 1.1 * later_steps(right)
    assert right.core.capacity_withdrawn_bytes == wrong.core.capacity_withdrawn_bytes == 0
    assert abs(corrected.core.capacity_withdrawn_bytes - error) <= ERROR // 4
    assert corrected.counters["faults"] < wrong.counters["faults"] / 2


@pytest.mark.parametrize("error", [ERROR, 2 * ERROR])
def test_faults_correct_it_afterwards(error: int) -> None:
    right, corrected, wrong = (
        outcome(policy, size, tells_free)
        for policy, size, tells_free in (
            ("deepum-faults", 0, False),
            ("deepum-faults", error, False),
            ("deepum", error, False),
        )
    )
    assert right.core.driver_evictions_seen == 0 < corrected.core.driver_evictions_seen
    assert error <= corrected.core.capacity_withdrawn_bytes + 32 * UM_BLOCK_BYTES <= 2.5 * error
    assert later_steps(corrected) <= 1.03 * later_steps(right)
    assert later_steps(corrected) < 0.95 * later_steps(wrong)


def test_a_card_that_is_believed_too_small_is_left_at_that() -> None:
    found = outcome("deepum", -ERROR)
    assert found.core.capacity_bytes == CARD - ERROR
    assert found.core.capacity_withdrawn_bytes == 0


def test_the_command_takes_it() -> None:
    arguments = ["gpt2-small:batch=1", "--steps", "1", "--policy", "deepum", "--capacity-error"]
    wrong = CliRunner().invoke(command, [*arguments, "much"])
    assert isinstance(wrong.exception, Exception)
    assert "--capacity-error: 'much' is not a size" in str(wrong.exception)
