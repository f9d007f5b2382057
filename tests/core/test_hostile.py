"""Events from a program that is broken or hostile: counted, skipped, survived."""

from __future__ import annotations

import struct
from random import Random

import pytest
from deepum._core import lib
from hypothesis import given, settings
from hypothesis import strategies as st
from mover import BRINGS
from programs import there_and_back, write

from deepum.core import UM_BLOCK_BYTES, BlockRange, Core, CoreSettings, EventWriter

DEVICES = int(lib.DEEPUM_MAX_DEVICES)
KINDS = range(21)  # those that there are and some more
FREQUENT = {
    lib.DEEPUM_EVENT_EXECUTE: 100,
    lib.DEEPUM_EVENT_ALLOCATE: 12,
    lib.DEEPUM_EVENT_FREE: 2,
    lib.DEEPUM_EVENT_DEVICE: 1,
    lib.DEEPUM_EVENT_CAPACITY: 1,
    lib.DEEPUM_EVENT_MOVED: 10,
    lib.DEEPUM_EVENT_FAULT: 5,
    lib.DEEPUM_EVENT_PROGRESS: 5,
    lib.DEEPUM_EVENT_PROGRAM_PREFETCH: 5,
    lib.DEEPUM_EVENT_PROGRAM_ADVISE: 2,
    lib.DEEPUM_EVENT_BLOCK_ACTIVE: 5,
    lib.DEEPUM_EVENT_BLOCK_INACTIVE: 3,
    lib.DEEPUM_EVENT_LOST: 0.2,
}
EDGES = (
    0,
    1,
    2,
    7,
    63,
    64,
    255,
    4096,
    65535,
    (1 << 20) - 1,
    1 << 20,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
)
WIDE_EDGES = (
    *EDGES,
    1 << 32,
    UM_BLOCK_BYTES,
    UM_BLOCK_BYTES - 1,
    1 << 44,
    (1 << 45) - 1,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


def small_core(**changes: int) -> tuple[Core, EventWriter]:
    """Two live allocations of 8 UM blocks in slots 0 and 1, of generation 1, and room for 12."""
    core, writer = Core(CoreSettings.default(**{"launch_queue": 0, **changes})), EventWriter()
    writer.device(12)
    writer.allocate(0, 8)
    writer.allocate(1, 8)
    core.process(writer.take())
    return core, writer


def set_as_at_the_start(writer: EventWriter) -> None:
    """No budgets, the default degree, and commands are given."""
    for device in range(DEVICES):
        writer.setting(lib.DEEPUM_SETTING_BUDGET, 0, device)
    writer.setting(lib.DEEPUM_SETTING_PREFETCH_DEGREE, CoreSettings.default().prefetch_degree)
    writer.setting(lib.DEEPUM_SETTING_POLICY, lib.DEEPUM_POLICY_CORRELATION)


def still_works(core: Core, sequence: int = 1 << 40) -> bool:
    """A decent program in other slots is learned and prefetched for."""
    writer = EventWriter(sequence)
    writer.lost(0)  # what the hostile one left behind goes, and what it has set
    set_as_at_the_start(writer)
    writer.device(12)
    writer.allocate(0, 24, name=1 << 50)
    core.process(writer.take())
    core.take_command_bytes()
    step = there_and_back(24, 8)
    core.process(write(writer, step * 4))
    core.take_command_bytes()
    before = core.statistics()
    core.process(write(writer, step * 2))
    after = core.statistics()
    right = after.predictions_right - before.predictions_right
    return (
        right == 2 * len(step)
        and after.malformed_events == before.malformed_events
        and bool(core.take_commands())
    )


def execute(
    hash_: int = 1,
    stream: int = 0,
    counts: tuple[int, int, int] = (0, 0, 0),
    ranges: tuple[int, ...] = (),
) -> bytes:
    return struct.pack("<QIHHHHI", hash_, stream, *counts, 0, 0) + struct.pack(
        f"<{len(ranges)}Q", *ranges
    )


GOOD = BlockRange(0, 0, 8).encode()
BLOCK = "<IIQQQQ"
MALFORMED: dict[str, tuple[int, bytes, int]] = {  # kind, body, device
    "a kind that does not exist": (200, b"", 0),
    "padding outside a ring": (lib.DEEPUM_EVENT_PAD, b"", 0),
    "a device out of range": (lib.DEEPUM_EVENT_DEVICE, struct.pack("<QQ", 1 << 30, 1 << 30), 16),
    "a device far out of range": (lib.DEEPUM_EVENT_EXECUTE, execute(), (1 << 32) - 1),
    "a device event too short": (lib.DEEPUM_EVENT_DEVICE, bytes(8), 0),
    "an allocation too short": (lib.DEEPUM_EVENT_ALLOCATE, bytes(24), 0),
    "an allocation of nothing": (
        lib.DEEPUM_EVENT_ALLOCATE,
        struct.pack("<IIQQQ", 2, 1, 9, 0, 0),
        0,
    ),
    "an allocation beyond any memory": (
        lib.DEEPUM_EVENT_ALLOCATE,
        struct.pack("<IIQQQ", 2, 1, 9, (1 << 64) - 1, 0),
        0,
    ),
    "an allocation of 16 TiB": (
        lib.DEEPUM_EVENT_ALLOCATE,
        struct.pack("<IIQQQ", 2, 1, 9, 1 << 44, 0),
        0,
    ),
    "a slot out of range": (
        lib.DEEPUM_EVENT_ALLOCATE,
        struct.pack("<IIQQQ", 1 << 20, 1, 9, 1 << 21, 0),
        0,
    ),
    "a slot far beyond the others": (
        lib.DEEPUM_EVENT_ALLOCATE,
        struct.pack("<IIQQQ", 1 << 19, 1, 9, 1 << 21, 0),
        0,
    ),
    "the end of an unknown slot": (lib.DEEPUM_EVENT_FREE, struct.pack("<II", 77, 1), 0),
    "the end of another generation": (lib.DEEPUM_EVENT_FREE, struct.pack("<II", 0, 2), 0),
    "the end of nothing": (lib.DEEPUM_EVENT_FREE, b"", 0),
    "a block of an unknown slot": (
        lib.DEEPUM_EVENT_BLOCK_ACTIVE,
        struct.pack(BLOCK, 77, 1, 0, 512, 0, 0),
        0,
    ),
    "a block of another generation": (
        lib.DEEPUM_EVENT_BLOCK_ACTIVE,
        struct.pack(BLOCK, 0, 9, 0, 512, 0, 0),
        0,
    ),
    "a block of no bytes": (lib.DEEPUM_EVENT_BLOCK_ACTIVE, struct.pack(BLOCK, 0, 1, 0, 0, 0, 0), 0),
    "a block beyond its allocation": (
        lib.DEEPUM_EVENT_BLOCK_ACTIVE,
        struct.pack(BLOCK, 0, 1, 8 << 21, 1, 0, 0),
        0,
    ),
    "a block whose end wraps": (
        lib.DEEPUM_EVENT_BLOCK_INACTIVE,
        struct.pack(BLOCK, 0, 1, 8, (1 << 64) - 8, 0, 0),
        0,
    ),
    "a launch too short": (lib.DEEPUM_EVENT_EXECUTE, bytes(16), 0),
    "more ranges than the record holds": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(0, 0, 2), ranges=(GOOD,)),
        0,
    ),
    "range counts that add up to much": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(65535, 65535, 65535)),
        0,
    ),
    "a stream out of range": (lib.DEEPUM_EVENT_EXECUTE, execute(stream=64), 0),
    "a range in an unknown slot": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(0, 0, 1), ranges=(BlockRange(9, 0, 1).encode(),)),
        0,
    ),
    "a range past the end": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(0, 0, 1), ranges=(BlockRange(0, 7, 2).encode(),)),
        0,
    ),
    "an empty range": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(0, 0, 1), ranges=(BlockRange(0, 0, 0).encode(),)),
        0,
    ),
    "a range of ones": (
        lib.DEEPUM_EVENT_EXECUTE,
        execute(counts=(0, 0, 1), ranges=((1 << 64) - 1,)),
        0,
    ),
    "a prefetch of nothing known": (
        lib.DEEPUM_EVENT_PROGRAM_PREFETCH,
        struct.pack("<Qii", BlockRange(5, 0, 1).encode(), 0, 0),
        0,
    ),
    "a prefetch past the end": (
        lib.DEEPUM_EVENT_PROGRAM_PREFETCH,
        struct.pack("<Qii", BlockRange(0, 8, 1).encode(), -1, 0),
        0,
    ),
    "advice past the end": (
        lib.DEEPUM_EVENT_PROGRAM_ADVISE,
        struct.pack("<Qii", BlockRange(0, 0, 9).encode(), -1, 3),
        0,
    ),
    "a fault past the end": (
        lib.DEEPUM_EVENT_FAULT,
        struct.pack("<QQ", BlockRange(1, 1, 8).encode(), 1),
        0,
    ),
    "a fault too short": (lib.DEEPUM_EVENT_FAULT, bytes(8), 0),
    "an answer too short": (lib.DEEPUM_EVENT_MOVED, bytes(8), 0),
    "a loss too short": (lib.DEEPUM_EVENT_LOST, b"", 0),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_event_is_counted_and_moves_no_block(what: str) -> None:
    core, writer = small_core()
    writer.execute(5, [BlockRange(0, 0, 8)])
    core.process(writer.take())
    states = [core.block_state(slot, block) for slot in range(3) for block in range(10)]
    kind, body, device = MALFORMED[what]
    writer.record(kind, body, device)
    core.process(writer.take())
    statistics = core.statistics()
    assert statistics.malformed_events == 1
    assert statistics.allocated_bytes == 16 * UM_BLOCK_BYTES
    assert [core.block_state(slot, block) for slot in range(3) for block in range(10)] == states
    # What follows it in the same batch is taken.
    writer.execute(6, [BlockRange(1, 0, 2)])
    core.process(writer.take())
    assert core.block_state(1, 1) & Core.RESIDENT
    assert still_works(core)


def test_the_sound_ranges_of_a_launch_count_although_one_is_not() -> None:
    core, writer = small_core()
    writer.execute(5, [BlockRange(9, 0, 1), BlockRange(1, 2, 3)])
    core.process(writer.take())
    assert core.statistics().malformed_events == 1
    assert [bool(core.block_state(1, block) & Core.RESIDENT) for block in range(8)] == [
        2 <= block < 5 for block in range(8)
    ]


@pytest.mark.parametrize("words", [0, 1, 3, 2049, 65535])
def test_a_broken_length_ends_the_batch_and_nothing_else(words: int) -> None:
    """What would follow cannot be told apart from it."""
    core, writer = small_core()
    first = writer.execute(5, [BlockRange(0, 0, 1)])
    records = writer.take()
    writer.execute(6, [BlockRange(1, 0, 1)])
    broken = bytearray(writer.take())
    broken[0:2] = struct.pack("<H", words)
    if words == 3:
        broken = broken[:20]  # cut off
    assert core.process(records + bytes(broken)) == first
    assert core.statistics().malformed_events == 1
    assert core.block_state(0, 0) & Core.RESIDENT
    assert not core.block_state(1, 0)
    assert still_works(core)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=20))
def test_any_bytes_are_survived(batches: list[bytes]) -> None:
    core, _ = small_core()
    for batch in batches:
        core.process(batch)
    assert still_works(core)


def random_record(random: Random, writer: EventWriter) -> None:
    """Of an existing kind mostly, with fields that are mostly edges."""

    def number(bits: int) -> int:
        choice = random.random()
        if choice < 0.5:
            return random.randrange(8)
        return (
            random.choice(WIDE_EDGES if bits == 64 else EDGES)
            if choice < 0.9
            else random.getrandbits(bits)
        )

    def words(count: int) -> bytes:
        return b"".join(
            struct.pack("<Q", number(64))
            if random.random() < 0.5
            else struct.pack("<II", number(32) & 0xFFFFFFFF, number(32) & 0xFFFFFFFF)
            for _ in range(count)
        )

    def where() -> int:
        return BlockRange(
            random.choice((0, 0, 1, 2, 3, 99)),
            random.choice((0, 0, 3, 7, 9)),
            random.choice((0, 1, 1, 4, 8, 700)),
        ).encode()

    if random.random() < 0.1:
        kind, body = random.choice(KINDS), words(random.randrange(8))
    else:  # nearly right, so that it gets far
        kind = random.choices(list(FREQUENT), list(FREQUENT.values()))[0]
        ranges = tuple(where() for _ in range(random.randrange(5)))
        slot, generation = random.randrange(4), random.choice((1, 1, 1, 2))
        body = {
            lib.DEEPUM_EVENT_EXECUTE: execute(
                random.choice((random.randrange(24), number(64))),
                random.choice((0, 1, 63, 64)),
                (0, 0, len(ranges)),
                ranges,
            ),
            lib.DEEPUM_EVENT_ALLOCATE: struct.pack(
                "<IIQQQ",
                slot,
                generation,
                number(64),
                random.randrange(40) * 700_000,
                random.choice((0, 512, number(64))),
            ),
            lib.DEEPUM_EVENT_FREE: struct.pack("<II", slot, generation),
            lib.DEEPUM_EVENT_DEVICE: struct.pack("<QQ", 1 << 40, random.randrange(20) << 21),
            lib.DEEPUM_EVENT_CAPACITY: struct.pack(
                "<QQ", random.choice((1 << 40, number(64))), random.randrange(20) << 21
            ),
            lib.DEEPUM_EVENT_MOVED: struct.pack(
                "<QII", random.randrange(2000), random.randrange(5), 0
            ),
            lib.DEEPUM_EVENT_FAULT: struct.pack("<QQ", where(), number(64)),
            lib.DEEPUM_EVENT_PROGRESS: struct.pack(
                "<IIQQ",
                random.choice((0, 0, 0, 1, 63, 64, number(32))),
                0,
                *(random.choice((writer.sequence, number(64))) for _ in "ab"),
            ),
            lib.DEEPUM_EVENT_PROGRAM_PREFETCH: struct.pack(
                "<Qii", where(), random.choice((-1, 0, 1, 99)), 0
            ),
            lib.DEEPUM_EVENT_PROGRAM_ADVISE: struct.pack(
                "<Qii", where(), random.choice((-1, 0)), random.randrange(6)
            ),
            lib.DEEPUM_EVENT_BLOCK_ACTIVE: struct.pack(
                BLOCK,
                slot,
                generation,
                random.randrange(9) << 20,
                random.randrange(1, 9) << 20,
                number(64),
                0,
            ),
            lib.DEEPUM_EVENT_BLOCK_INACTIVE: struct.pack(
                BLOCK, slot, generation, random.randrange(9) << 20, 1 << 20, 0, 0
            ),
            lib.DEEPUM_EVENT_LOST: struct.pack("<Q", number(64)),
        }[kind]
    writer.record(
        kind,
        body,
        device=random.choice((*(0,) * 40, 1, 15, 16, 1 << 31)),
        flags=random.randrange(256),
    )


def check_commands(core: Core) -> None:
    """No command names what cannot be: the mover would skip it, but must not have to."""
    last = 0
    for command in core.take_commands():
        assert command.id > last
        assert command.after_move < command.id
        assert command.kind in (
            "prefetch",
            "populate",
            "evict",
            "hold",
            "advise",
            "copy_out",
            "drop",
            "collapse",
        )
        assert command.device < 16
        if command.kind != "hold":
            assert command.slot < 4
            # And may do nothing else.
            waits = command.kind in (*BRINGS, "collapse") and command.after_move > 0
            assert (
                (0 if waits else 1)
                <= command.block_count
                <= (1 << 24 if command.kind == "advise" else 8)
            )
            assert command.first_block + command.block_count <= 1 << 24
        last = command.id


@pytest.mark.parametrize("seed", range(24))
def test_random_records_are_survived_within_bounds(seed: int) -> None:
    random, writer = Random(seed), EventWriter()
    core = Core(
        CoreSettings.default(
            eviction_order=seed % 3,
            advice=random.choice((1, 3, 3)),
            prefetch_degree=random.choice((1, 4, 2000)),
            execution_ids=16,
            execution_records=2,
            block_table_rows=4,
            block_table_ways=random.choice((1, 3)),
            block_table_successors=1,
            headroom_blocks=random.choice((0, 2)),
            pre_eviction=int(seed % 3 != 0),
            confidence_launches=1,
            table_mebibytes=1,
        )
    )
    for _ in range(60):
        for _ in range(100):
            random_record(random, writer)
        set_as_at_the_start(writer)
        core.process(writer.take())
        check_commands(core)
        statistics = core.statistics()
        assert statistics.execution_ids <= 16
        assert statistics.table_bytes <= 1 << 20
        # Whole UM blocks.
        assert statistics.resident_bytes <= statistics.allocated_bytes + 4 * 2 * UM_BLOCK_BYTES
    statistics = core.statistics()
    assert statistics.events == 60 * (100 + DEVICES + 2)
    assert 1000 < statistics.malformed_events < 5000
    assert min(statistics.launches, statistics.commands) > 500, "nothing but noise"
    assert still_works(core)
