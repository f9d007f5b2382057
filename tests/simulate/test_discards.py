"""What dead memory costs by what the driver's discards do: nothing is slower than without any."""

from __future__ import annotations

import pytest

from deepum.core import UM_BLOCK_BYTES, BlockRange, CoreSettings, commands
from deepum.simulate.driver import COSTS, DISCARDS, FAULTS, Driver
from deepum.simulate.mode import GATED, LOCK_STEP, Mode
from deepum.simulate.replay import Outcome, machine, replay
from deepum.trace import Trace, TraceWriter, work

FURTHEST_NEXT_USE = 2
STEPS, LAYERS, WIDTH = 8, 6, 4  # a layer's activations in UM blocks
CARD = 16  # UM blocks


def training() -> Trace:
    """Activations are handed out on the way forward and taken back on the way back, and another's
    buffers are used in between.
    """
    writer = TraceWriter()
    writer.device(CARD)
    writer.allocate(0, LAYERS * WIDTH)
    writer.allocate(1, 8)

    def launch(execution: int, where: BlockRange, flags: int) -> None:
        access = work.Access(
            where.slot, flags, where.first * UM_BLOCK_BYTES, where.count * UM_BLOCK_BYTES
        )
        writer.launch(execution, [where], [access], 1e6, 0)

    active = 0
    for _ in range(STEPS):
        for layer in range(LAYERS):
            active += WIDTH * UM_BLOCK_BYTES
            writer.block(True, 0, layer * WIDTH * UM_BLOCK_BYTES, WIDTH * UM_BLOCK_BYTES, active)
            launch(100 + layer, BlockRange(0, layer * WIDTH, WIDTH), work.WRITE)
        for layer in reversed(range(LAYERS)):
            launch(200 + layer, BlockRange(0, layer * WIDTH, WIDTH), work.READ)
            active -= WIDTH * UM_BLOCK_BYTES
            writer.block(False, 0, layer * WIDTH * UM_BLOCK_BYTES, WIDTH * UM_BLOCK_BYTES, active)
        launch(300, BlockRange(1, 0, 8), work.READ | work.WRITE)
        writer.synchronise()
    return writer.trace("discards")


def run(driver: Driver, invalidation: int = 1, mode: Mode = GATED) -> Outcome:
    settings = CoreSettings.default(
        eviction_order=FURTHEST_NEXT_USE, headroom_blocks=1, invalidation=invalidation
    )
    figures = driver.figures(machine("v100-16gb"))
    return replay(
        training(),
        machine("v100-16gb", **figures),
        settings,
        CARD * UM_BLOCK_BYTES,
        keep_commands=True,
        mode=mode,
    )


def count_discards(outcome: Outcome) -> int:
    return sum(command.kind == "discard" for command in commands(outcome.commands))


def later_faults(outcome: Outcome) -> float:
    """In the second half of the steps."""
    return outcome.marks[-1].counters["faults"] - outcome.marks[STEPS // 2].counters["faults"]


@pytest.mark.parametrize("mode", [LOCK_STEP, GATED], ids=str)
def test_refused_discards_cost_no_more_than_none(mode: Mode) -> None:
    """Behind gates but for the first step, whose discards the driver has not refused yet when the
    next ones are decided.
    """
    refused, without = (
        run(Driver(discards="refused"), mode=mode),
        run(Driver(), invalidation=0, mode=mode),
    )
    assert refused.counters["bytes_discarded"] == 0 < refused.core.discards_undone
    took, at_most = (
        one.counters["gpu_time_ns"] - (one.marks[0].ns if mode is GATED else 0)
        for one in (refused, without)
    )
    assert took <= 1.02 * at_most
    assert later_faults(refused) <= later_faults(without)
    assert count_discards(refused) < count_discards(run(Driver(discards="ideal"), mode=mode)) / 4, (
        "it goes on asking"
    )


@pytest.mark.parametrize("discards", ["ideal", "driver"])
def test_discards_save_copies_in_both_directions(discards: str) -> None:
    with_them, without = run(Driver(discards=discards)), run(Driver(), invalidation=0)
    for counter in ("bytes_d2h", "bytes_h2d"):
        assert with_them.counters[counter] < 0.8 * without.counters[counter]


@pytest.mark.parametrize("costs", COSTS)
def test_they_pay_at_all_costs(costs: str) -> None:
    with_them, without = run(Driver(costs, "driver")), run(Driver(costs), invalidation=0)
    assert with_them.counters["gpu_time_ns"] < without.counters["gpu_time_ns"]


def test_kind_costs_are_the_least_and_unkind_ones_the_most() -> None:
    kind, expected, unkind = (
        run(Driver(costs, "driver")).counters["gpu_time_ns"] for costs in COSTS
    )
    assert kind < expected < unkind


def test_cheaper_faults_make_paging_on_demand_faster_and_nothing_else_changes() -> None:
    preset = machine("rtx4090")
    figures = [Driver(faults=faults).figures(preset) for faults in FAULTS]
    assert figures[0] == pytest.approx({name: getattr(preset, name) for name in figures[0]})
    for name in figures[0]:
        assert figures[0][name] > figures[1][name] > figures[2][name]
    assert figures[2]["fault_ns_per_byte"] == pytest.approx(1 / preset.h2d_gbps)


def test_every_name_is_a_figure_that_the_model_takes() -> None:
    for costs, discards, faults in zip([*COSTS], [*DISCARDS], [*FAULTS], strict=True):
        assert run(Driver(costs, discards, faults)).counters["kernels"] > 0
