"""Decisions depend on what came before, never on what comes after, and not on how the events arrive
in batches.
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import event_programs, write_program

from deepum.core import Command, Core, CoreSettings, EventWriter

SETTINGS = st.builds(
    CoreSettings.default,
    eviction_order=st.integers(0, 2),
    advice=st.integers(0, 3),
    prefetch_degree=st.sampled_from((4, 2000)),
    execution_ids=st.sampled_from((16, 65536)),
    headroom_blocks=st.sampled_from((0, 2)),
    pre_eviction=st.integers(0, 1),
    confidence_launches=st.sampled_from((3, 4096)),
)


def split(records: bytes) -> list[bytes]:
    """The single records."""
    single, at = [], 0
    while at < len(records):
        length = int.from_bytes(records[at : at + 2], "little") * 8
        single.append(records[at : at + length])
        at += length
    return single


def renumber(records: list[bytes], sequence: int) -> list[bytes]:
    """With the sequences that these records would have had from there on."""
    return [
        record[:8] + (sequence + i).to_bytes(8, "little") + record[16:]
        for i, record in enumerate(records)
    ]


def decide(
    core_settings: CoreSettings, batches: list[bytes], take: Random | None = None
) -> list[Command]:
    """All commands; those decided so far are taken at random times."""
    core, commands = Core(core_settings), []
    for batch in batches:
        core.process(batch)
        if take is None or take.random() < 0.5:
            commands += core.take_commands()
    return commands + core.take_commands()


PROGRAMS = st.one_of(event_programs(), event_programs(steady=True))
LIMITS = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@LIMITS
@given(SETTINGS, PROGRAMS, st.floats(0.2, 0.95), st.randoms(use_true_random=False))
def test_a_shuffled_future_changes_no_earlier_command(
    core_settings: CoreSettings, program: list[Any], share: float, random: Random
) -> None:
    records = split(write_program(program, EventWriter()))
    cut = int(len(records) * share)
    past, future = records[:cut], records[cut:]
    random.shuffle(future)
    whole = [c for c in decide(core_settings, [b"".join(records)]) if c.cause <= cut]
    shuffled = [
        c
        for c in decide(core_settings, [b"".join(past + renumber(future, cut + 1))])
        if c.cause <= cut
    ]
    assert decide(core_settings, [b"".join(past)]) == whole == shuffled


@LIMITS
@given(SETTINGS, PROGRAMS, st.randoms(use_true_random=False))
def test_batches_change_nothing(
    core_settings: CoreSettings, program: list[Any], random: Random
) -> None:
    records = split(write_program(program, EventWriter()))
    cuts = sorted(
        {
            0,
            len(records),
            *(random.randrange(len(records) + 1) for _ in range(random.choice((1, 5, 1000)))),
        }
    )
    batches = [b"".join(records[a:b]) for a, b in pairwise(cuts)]
    assert decide(core_settings, batches, random) == decide(core_settings, [b"".join(records)])


def test_the_programs_above_make_the_core_decide_things() -> None:
    """Enough commands of each kind on both sides of a cut for the claims to mean something."""
    before = after = 0
    seen: set[str] = set()

    @settings(
        max_examples=150,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(PROGRAMS)
    def count(program: list[Any]) -> None:
        nonlocal before, after
        records = split(write_program(program, EventWriter()))
        commands = decide(CoreSettings.default(headroom_blocks=0, advice=3), [b"".join(records)])
        seen.update(c.kind for c in commands)
        before += sum(c.cause <= len(records) // 2 for c in commands)
        after += sum(c.cause > len(records) // 2 for c in commands)

    count()
    assert min(before, after) > 500
    assert {
        "prefetch",
        "populate",
        "evict",
        "discard",
        "advise",
        "copy_out",
        "drop",
        "collapse",
    } <= seen
