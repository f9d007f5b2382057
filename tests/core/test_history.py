"""Prediction by the history: what it foresees, which differences it overlooks, and the room it
makes for what is still to come.
"""

from __future__ import annotations

from random import Random

import pytest
from programs import Launch, caching_step, kernels, sweep, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, CoreStatistics, EventWriter

TABLES, HISTORY = 0, 1
STEP = sweep(128, 128)


def predictor(**changes: int) -> tuple[Core, EventWriter]:
    """A core with an allocation that does not fit."""
    core, writer = Core(CoreSettings.default(**changes)), EventWriter()
    writer.device(64)
    writer.allocate(0, 128)
    core.process(writer.take())
    return core, writer


def happened(core: Core, records: bytes) -> CoreStatistics:
    """The counters' change over these records."""
    before = core.statistics()
    core.process(records)
    after = core.statistics()
    return CoreStatistics(
        **{name: value - getattr(before, name) for name, value in vars(after).items()}
    )


def test_a_step_is_predicted_from_its_second_occurrence_on() -> None:
    core, writer = predictor()
    assert happened(core, write(writer, STEP)).predictions == 0
    second = happened(core, write(writer, STEP))
    assert second.predictions == second.predictions_right
    assert second.predictions >= len(STEP) - 4  # its first launches tell that it comes again
    third = happened(core, write(writer, STEP))
    assert third.predictions == third.predictions_right == len(STEP)


def test_tensors_that_change_places_keep_their_step() -> None:
    """Of equal size, and handed out in the same order: they have the same names wherever
    they lie.
    """
    core, writer = predictor()
    random = Random(1)
    steps = []
    for _ in range(6):
        caching_step(writer, random.sample(range(24), 12))
        steps.append(happened(core, writer.take()))
    assert all(step.predictions == step.predictions_right == 24 for step in steps[2:])


def swapping_step(writer: EventWriter, swapped: bool) -> None:
    """A step with pairs of tensors that are handed out in one order or the other, so that they swap
    their names.
    """
    size = 4 * UM_BLOCK_BYTES
    for pair in range(0, 12, 2):
        for place in (pair + 1, pair) if swapped else (pair, pair + 1):
            writer.block(True, 0, place * size, size, 0)
        for place in (pair, pair + 1):
            writer.execute(7000 + place, [BlockRange(0, 4 * place, 4)])
    for place in range(12):
        writer.block(False, 0, place * size, size, 0)


@pytest.mark.parametrize("prediction", [TABLES, HISTORY])
def test_tensors_that_change_names_restart_the_tables_chain_again_and_again(
    prediction: int,
) -> None:
    """By history twice, when most of what was launched lay elsewhere: from then on where each step
    has its like is followed.
    """
    core, writer = predictor(prediction=prediction)
    right = []
    for number in range(20):
        swapping_step(writer, number % 3 == 0)
        right.append(happened(core, writer.take()).predictions_right)
    restarts = core.statistics().chain_restarts
    if prediction == TABLES:
        assert restarts > 4
    else:
        assert restarts <= 2
        assert right[7:] == [12] * 13


@pytest.mark.parametrize(("new", "restarts"), [(1, 0), (8, 0), (9, 1)])
def test_a_few_launches_that_nobody_foresaw_do_not_end_the_chain(new: int, restarts: int) -> None:
    core, writer = predictor()
    core.process(write(writer, STEP * 3))
    found = happened(
        core, write(writer, [*STEP[:50], *(Launch(90_000 + i, ()) for i in range(new)), *STEP[50:]])
    )
    assert found.chain_restarts == restarts
    if not restarts:
        assert found.predictions_right == len(STEP)


@pytest.mark.parametrize(("missing", "goes_on"), [(1, True), (63, True), (64, False)])
def test_launches_that_are_missing_do_not_end_the_chain_if_what_follows_is_near(
    missing: int, goes_on: bool
) -> None:
    """It is looked for among the next 64 that were expected."""
    core, writer = predictor()
    core.process(write(writer, STEP * 3))
    found = happened(core, write(writer, [*STEP[:20], *STEP[20 + missing :]]))
    assert (found.chain_restarts == 0) == goes_on
    if goes_on:
        assert found.predictions - found.predictions_right == 1


LAYERS = kernels("abcd" * 12 + "X" + "abcd" * 12 + "Y")


@pytest.mark.parametrize(("prediction", "wrong"), [(TABLES, 40), (HISTORY, 0)])
def test_repeated_layers_are_told_apart_by_where_they_stand(prediction: int, wrong: int) -> None:
    """Which of them is the last one, and what comes then, no three launches tell."""
    core, writer = predictor(prediction=prediction)
    core.process(write(writer, LAYERS * 4))
    found = happened(core, write(writer, LAYERS * 10))
    assert found.predictions == 10 * len(LAYERS)
    assert found.predictions - found.predictions_right == wrong


@pytest.mark.parametrize("before", ["", "abcd" * 3 + "X" + "abcd" * 12 + "Y"])
def test_which_of_repeated_layers_it_is_shows_in_what_follows(before: str) -> None:
    """After an interruption the program begins its step anew, or goes on in the middle of it. The
    chain is as long as the step.
    """
    core, writer = predictor(prefetch_degree=len(LAYERS))
    interruption = [Launch(80_000 + i, ()) for i in range(9)]
    core.process(write(writer, [*LAYERS * 4, *interruption, *kernels(before), *LAYERS * 2]))
    found = happened(core, write(writer, LAYERS))
    assert found.predictions == found.predictions_right == len(LAYERS)


def test_the_history_goes_on_in_a_loaded_profile() -> None:
    before, writer = predictor()
    before.process(write(writer, LAYERS * 4))
    core, writer = predictor()
    core.load_tables(before.save_tables())
    found = happened(core, write(writer, LAYERS * 2))
    assert found.predictions == found.predictions_right >= 2 * len(LAYERS) - 1


@pytest.mark.parametrize(("launches", "foreseen"), [(600, True), (1000, False)])
def test_a_history_with_little_memory_knows_shorter_steps(launches: int, foreseen: bool) -> None:
    """An eighth of the tables' memory: some 800 launches of 1 MiB."""
    core, writer = predictor(table_mebibytes=1)
    step = [Launch(i, (BlockRange(0, i % 128, 1),)) for i in range(launches)]
    core.process(write(writer, step * 4))
    found = happened(core, write(writer, step))
    assert found.predictions == found.predictions_right == (launches if foreseen else 0)
    assert core.statistics().table_bytes <= 1 << 20
