"""Settings that change while a session runs."""

from __future__ import annotations

from random import Random

import pytest
from deepum._core import lib
from driving import Session
from mover import BRINGS, Machine
from programs import sweep, write

from deepum.core import UM_BLOCK_BYTES, Core, CoreSettings, EventWriter, Setting, events
from deepum.core.replay import replay

BLOCKS, CARD = 32, 16
STEP = sweep(BLOCKS, 16)


def steered(session: Session, setting: int, value: int, device: int = 0) -> list[str]:
    """Kinds of the commands that follow at once, which the machine carries out."""
    session.writer.setting(setting, value, device)
    session.core.process(session.writer.take())
    given = session.core.take_commands()
    for command in given:
        session.machine.give(command)
    session.machine.advance(1 << 30)
    return [command.kind for command in given]


def warm(**changes: int) -> Session:
    """A session that sweeps over twice what the card has, and has learned to."""
    session = Session(Machine(CARD, Random(1)), [BLOCKS], headroom_blocks=0, **changes)
    for _ in range(6):
        session.step(STEP)
        session.wait()
    return session


def capacity(core: Core) -> int:
    return core.statistics().capacity_bytes // UM_BLOCK_BYTES


def ahead(core: Core, writer: EventWriter) -> int:
    """Blocks that an iteration's launches bring for others."""
    found = 0
    for launch in STEP:
        writer.execute(launch.execution, launch.ranges)
        core.process(writer.take())
        own = launch.ranges[0]
        found += sum(
            command.block_count
            for command in core.take_commands()
            if command.kind in BRINGS
            and not own.first <= command.first_block < own.first + own.count
        )
    return found


def test_a_smaller_budget_holds_at_once() -> None:
    session = warm()
    assert session.core.statistics().resident_bytes == CARD * UM_BLOCK_BYTES
    kinds = steered(session, lib.DEEPUM_SETTING_BUDGET, 10 * UM_BLOCK_BYTES)
    assert set(kinds) == {"evict"}
    assert capacity(session.core) == 10
    for _ in range(3):
        assert session.core.statistics().resident_bytes <= 10 * UM_BLOCK_BYTES
        session.step(STEP)


def test_a_budget_outlives_what_the_program_tells_and_ends() -> None:
    core, writer = Core(), EventWriter()
    writer.device(16)
    writer.setting(lib.DEEPUM_SETTING_BUDGET, 12 * UM_BLOCK_BYTES)
    writer.capacity(14)
    core.process(writer.take())
    assert capacity(core) == 12
    writer.setting(lib.DEEPUM_SETTING_BUDGET, 0)
    core.process(writer.take())
    assert capacity(core) == 14


def test_a_budget_is_never_more_than_the_device_has() -> None:
    core, writer = Core(), EventWriter()
    writer.device(16)
    writer.capacity(8)
    writer.setting(lib.DEEPUM_SETTING_BUDGET, 99 * UM_BLOCK_BYTES)
    core.process(writer.take())
    assert capacity(core) == 8  # `EventWriter.capacity` tells of a device of that size


def test_a_budget_of_a_device_that_comes_later() -> None:
    core, writer = Core(), EventWriter()
    writer.setting(lib.DEEPUM_SETTING_BUDGET, 5 * UM_BLOCK_BYTES, 3)
    writer.device(16, 3)
    writer.device(16, 0)
    core.process(writer.take())
    assert capacity(core) == 5 + 16


def test_a_lower_degree_fetches_less_far_ahead_at_once() -> None:
    session = warm()
    core, writer = session.core, session.writer
    assert ahead(core, writer) > 0
    writer.setting(lib.DEEPUM_SETTING_PREFETCH_DEGREE, 0)
    ahead(core, writer)
    assert ahead(core, writer) == 0
    writer.setting(lib.DEEPUM_SETTING_PREFETCH_DEGREE, 8192)
    ahead(core, writer)
    assert ahead(core, writer) > 0


@pytest.mark.parametrize("degree", [0, 8192])
def test_a_chain_that_is_longer_than_the_degree_is_not_trusted_beyond_it(degree: int) -> None:
    # The driver lets the host run ahead: what is only predicted is brought when the program waits.
    core, writer = Core(CoreSettings.default(headroom_blocks=0)), EventWriter()
    writer.device(CARD)
    writer.allocate(0, BLOCKS)
    core.process(writer.take() + write(writer, STEP * 8 + STEP[:4]))
    core.take_commands()
    writer.setting(lib.DEEPUM_SETTING_PREFETCH_DEGREE, degree)
    writer.synchronise()
    core.process(writer.take())
    brought = [each for each in core.take_commands() if each.kind in BRINGS]
    assert bool(brought) == (degree > 0)


def test_no_commands_without_a_policy_and_all_of_them_with_it_again() -> None:
    session = warm()
    assert session.step(STEP) == 0
    steered(session, lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_ON_DEMAND)
    commands = session.core.statistics().commands
    for _ in range(3):
        missed = session.step(STEP)
        session.wait()
    assert missed > 0
    assert session.core.statistics().commands == commands
    steered(session, lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_CORRELATION)
    for _ in range(3):
        missed = session.step(STEP)
        session.wait()
    assert missed == 0


@pytest.mark.parametrize(
    ("setting", "value", "changes"),
    [
        (lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_CORRELATION, {"policy": 0}),
        (lib.DEEPUM_SETTING_POLICY, 2, {}),
        (lib.DEEPUM_SETTING_PREFETCH_DEGREE, (1 << 20) + 1, {}),
        (0, 1, {}),
        (9, 1, {}),
    ],
)
def test_what_cannot_be_set_is_malformed(setting: int, value: int, changes: dict[str, int]) -> None:
    core, writer = Core(CoreSettings.default(**changes)), EventWriter()
    writer.setting(setting, value)
    core.process(writer.take())
    assert core.statistics().malformed_events == 1


def test_a_recorded_session_that_was_steered_replays_to_the_same_commands() -> None:
    settings = CoreSettings.default(headroom_blocks=0, launch_queue=0)
    core, writer = Core(settings), EventWriter()
    records = b""

    def take() -> None:
        nonlocal records
        taken = writer.take()
        records += taken
        core.process(taken)

    writer.device(CARD)
    writer.allocate(0, BLOCKS)
    for number in range(12):
        for launch in STEP:
            writer.execute(launch.execution, launch.ranges)
        writer.synchronise()
        take()
        changes = {
            4: (lib.DEEPUM_SETTING_BUDGET, 9 * UM_BLOCK_BYTES),
            6: (lib.DEEPUM_SETTING_PREFETCH_DEGREE, 3),
            8: (lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_ON_DEMAND),
            9: (lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_CORRELATION),
        }
        if number in changes:  # as the daemon does: with the sequence of the event before
            steering = EventWriter(writer.sequence - 1)
            steering.setting(*changes[number])
            steered_records = steering.take()
            records += steered_records
            core.process(steered_records)
    assert list(replay(records, settings)) == core.take_commands()
    setting_events = [event for event in events(records) if isinstance(event, Setting)]
    assert [event.setting for event in setting_events] == [
        "budget",
        "prefetch_degree",
        "policy",
        "policy",
    ]
