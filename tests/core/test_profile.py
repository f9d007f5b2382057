"""Profiles: what one run learned serves the next from its first iteration on; anything else is
refused and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mover import BRINGS
from programs import Launch, caching_step, sweep, there_and_back, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter

CHECKSUM = slice(16, 24)
HEAD = 24


def checksum(body: bytes | bytearray) -> int:
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in body:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


def sealed(profile: bytearray) -> bytes:
    """With the checksum that the rest has."""
    profile[CHECKSUM] = checksum(profile[HEAD:]).to_bytes(8, "little")
    return bytes(profile)


def begin(slots: dict[int, int], capacity: int = 28, **changes: int) -> tuple[Core, EventWriter]:
    """A core whose allocations named 100, 101, ... lie in these slots; sizes in UM blocks."""
    core, writer = Core(CoreSettings.default(**{"launch_queue": 0, **changes})), EventWriter()
    writer.device(capacity)
    for number, (slot, size) in enumerate(slots.items()):
        writer.allocate(slot, size, name=100 + number, generation=3)
    core.process(writer.take())
    return core, writer


def step(weights: int, extra: int) -> list[Launch]:
    """Forward and backward over the one, a sweep over the other."""

    def moved(launch: Launch, slot: int) -> Launch:
        return Launch(
            launch.execution, tuple(BlockRange(slot, r.first, r.count) for r in launch.ranges)
        )

    return [moved(launch, weights) for launch in there_and_back(24, 8)] + [
        moved(launch, extra) for launch in sweep(8, 4, slot=8)
    ]


@pytest.fixture(scope="module")
def learned() -> bytes:
    core, writer = begin({0: 24, 1: 8})
    core.process(write(writer, step(0, 1) * 6))
    return core.save_tables()


def early(core: Core, writer: EventWriter, launches: list[Launch]) -> int:
    """UM blocks that were brought before the launch that needs them came."""
    first = writer.sequence + 1
    core.process(write(writer, launches))
    needed: dict[tuple[int, int], int] = {}
    for i, launch in enumerate(launches):
        for r in launch.ranges:
            for block in range(r.first, r.first + r.count):
                needed.setdefault((r.slot, block), first + i)
    return sum(
        command.cause < needed[command.slot, block]
        for command in core.take_commands()
        if command.kind in BRINGS
        for block in range(command.first_block, command.first_block + command.block_count)
    )


def test_a_second_run_in_other_slots_prefetches_in_its_first_iteration(learned: bytes) -> None:
    cold, writer = begin({5: 24, 0: 8})
    assert early(cold, writer, step(5, 0)) == 0
    warm, writer = begin({5: 24, 0: 8})
    warm.load_tables(learned)
    assert early(warm, writer, step(5, 0)) >= 18
    statistics = warm.statistics()
    assert statistics.predictions == statistics.predictions_right == len(step(5, 0)) - 1


def test_the_profile_may_come_before_the_allocations(learned: bytes) -> None:
    """As in a session: the daemon loads it when the program says hello."""
    core, writer = Core(CoreSettings.default(launch_queue=0)), EventWriter()
    core.load_tables(learned)
    writer.device(28)
    writer.allocate(2, 24, name=100)
    writer.allocate(3, 8, name=101)
    core.process(writer.take())
    assert early(core, writer, step(2, 3)) >= 18


def test_torch_blocks_are_found_again_where_the_second_run_puts_them() -> None:
    def run(places: tuple[int, ...], steps: int, profile: bytes | None) -> Core:
        core, writer = Core(CoreSettings.default(launch_queue=0)), EventWriter()
        if profile is not None:
            core.load_tables(profile)
        writer.device(28)
        writer.allocate(0, 40)
        for _ in range(steps):
            caching_step(writer, places)
        core.process(writer.take())
        return core

    profile = run((0, 1, 2, 3, 4, 5, 6), 5, None).save_tables()
    warm = run((9, 2, 4, 0, 8, 1, 7), 1, profile).statistics()
    assert warm.predictions_right == warm.predictions == 13
    assert run((9, 2, 4, 0, 8, 1, 7), 1, None).statistics().predictions_right == 0


def test_saving_what_was_loaded_gives_the_same_predictions(learned: bytes) -> None:
    first, writer = begin({0: 24, 1: 8})
    first.load_tables(learned)
    again = first.save_tables()
    second, _ = begin({0: 24, 1: 8})
    second.load_tables(again)
    assert second.save_tables() == again
    records = write(writer, step(0, 1) * 3)
    first.process(records)
    second.process(records)
    assert first.take_commands() == second.take_commands()
    assert first.statistics() == second.statistics()


def test_a_core_that_keeps_fewer_ids_keeps_the_latest(learned: bytes) -> None:
    core, writer = begin({0: 24, 1: 8}, execution_ids=16)
    core.load_tables(learned)
    assert core.statistics().execution_ids == 16
    core.process(write(writer, step(0, 1)[-16:]))
    assert core.statistics().predictions_right >= 14


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda p: b"",
    "too little": lambda p: p[:23],
    "the head alone": lambda p: p[:HEAD],
    "half of it": lambda p: p[: len(p) // 2],
    "one byte less": lambda p: p[:-1],
    "one byte more": lambda p: p + b"\0",
    "twice": lambda p: p + p,
    "another magic": lambda p: b"DEEPUMEV" + p[8:],
    "another version": lambda p: p[:8] + (99).to_bytes(4, "little") + p[12:],
    "a flipped bit": lambda p: p[:200] + bytes([p[200] ^ 4]) + p[201:],
    "another checksum": lambda p: p[:16] + bytes(8) + p[24:],
    "text": lambda p: b"nonsense" * 100,
    "one byte less, sealed": lambda p: sealed(bytearray(p[:-1])),
    "eight bytes more, sealed": lambda p: sealed(bytearray(p + bytes(8))),
    "many names, sealed": lambda p: sealed(
        bytearray(p[:HEAD] + b"\xff\xff\xff\xff" + p[HEAD + 4 :])
    ),
    "empty but for counts, sealed": lambda p: sealed(
        bytearray(p[:HEAD] + b"\0\0\0\0\xff\xff\xff\x7f")
    ),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_profile_is_refused_and_the_tables_stay_usable(how: str, learned: bytes) -> None:
    core, writer = begin({0: 24, 1: 8})
    with pytest.raises(ValueError, match="not a profile"):
        core.load_tables(DAMAGES[how](learned))
    untouched, _ = begin({0: 24, 1: 8})
    assert core.statistics() == untouched.statistics()
    # What is sound is still taken, and works.
    core.load_tables(learned)
    assert early(core, writer, step(0, 1)) >= 18


def test_a_profile_is_refused_by_a_core_that_has_learned(learned: bytes) -> None:
    core, writer = begin({0: 24, 1: 8})
    core.process(write(writer, step(0, 1) * 4))
    before = core.save_tables()
    with pytest.raises(ValueError, match="not a profile"):
        core.load_tables(learned)
    assert core.save_tables() == before


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_behind_a_sound_head_are_survived(body: bytes) -> None:
    profile = Core().save_tables()
    core, writer = begin({0: 24, 1: 8})
    try:
        core.load_tables(sealed(bytearray(profile[:HEAD] + body)))
    except ValueError:
        assert core.statistics().execution_ids == 0
    core.process(write(writer, step(0, 1) * 3))
    assert core.statistics().malformed_events == 0


@pytest.mark.parametrize("seed", range(60))
def test_random_damage_under_a_right_checksum_is_refused_or_harmless(
    seed: int, learned: bytes
) -> None:
    """Predictions may be wrong then. The program that runs is served all the same."""
    random, profile = Random(seed), bytearray(learned)
    for _ in range(random.choice((1, 2, 40))):
        profile[random.randrange(HEAD, len(profile))] = random.choice(
            (0, 1, 255, random.randrange(256))
        )
    core, writer = begin({0: 24, 1: 8}, execution_ids=random.choice((16, 65536)))
    try:
        core.load_tables(sealed(profile))
    except ValueError:
        assert core.statistics().execution_ids == 0
    core.process(write(writer, step(0, 1) * 12))
    for command in core.take_commands():
        assert command.kind == "hold" or (command.slot, command.generation) in {(0, 3), (1, 3)}
        assert command.first_block + command.block_count <= 24
    before = core.statistics()
    core.process(write(writer, step(0, 1)))
    after = core.statistics()
    assert after.malformed_events == 0
    if core.settings.execution_ids > len(step(0, 1)):
        assert after.predictions_right - before.predictions_right == len(step(0, 1))
    assert after.allocated_bytes == 32 * UM_BLOCK_BYTES
