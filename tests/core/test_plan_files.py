"""Plans as bytes: as they were, or refused."""

from __future__ import annotations

import random

import pytest

from deepum.core import LaunchTime, Plan, PlannedKind, PlannedMove, PlanPoint, Recording, plan_files
from deepum.core.plan_requests import Options, Request


def random_plan(seed: int) -> Plan:
    chance = random.Random(seed)
    launches = tuple(chance.getrandbits(64) for _ in range(chance.randint(1, 50)))
    moves = sorted(
        (
            PlannedMove(
                chance.randrange(len(launches)),
                chance.choice(list(PlanPoint)),
                chance.choice(list(PlannedKind)),
                chance.getrandbits(64),
                chance.getrandbits(24),
                chance.randint(1, 1 << 20),
            )
            for _ in range(chance.randint(0, 80))
        ),
        key=lambda move: (move.launch, move.point),
    )
    return Plan(launches, tuple(moves), chance.randbytes(chance.choice((0, 1, 700))))


@pytest.mark.parametrize("seed", range(8))
def test_a_plan_is_read_as_it_was_written(seed: int) -> None:
    plan = random_plan(seed)
    assert plan_files.decode(plan_files.encode(plan)) == plan


def test_any_damage_is_noticed() -> None:
    data = plan_files.encode(random_plan(3))
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        with pytest.raises(ValueError, match="plan"):
            plan_files.decode(bytes(damaged))
    for length in (0, 7, 24, len(data) - 1, len(data) + 1):
        with pytest.raises(ValueError, match="plan"):
            plan_files.decode((data + b"x")[:length])


def test_an_outline_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_files, "MOST_OUTLINE_BYTES", 8)
    short, long = (Plan((1, 2), (), b"x" * count) for count in (8, 9))
    assert plan_files.decode(plan_files.encode(short)) == short
    assert plan_files.decode(plan_files.encode(long)) == Plan((1, 2), ())


def test_a_request_is_read_as_it_was_written() -> None:
    recording = Recording(b"l" * Recording.LAUNCH_BYTES * 3, b"u" * Recording.USE_BYTES * 5)
    times = (LaunchTime(3, 50, 4), LaunchTime(9, 70, 5), LaunchTime(20, 900, 0))
    request = Request(recording, times, Options(1 << 30, 12.5, 11.0, duplicates=True, seconds=2.0))
    data = request.encode()
    assert Request.decode(data) == request
    for length in (0, 10, len(data) - 1, len(data) - 24):
        with pytest.raises(ValueError, match="not a request"):
            Request.decode(data[:length])
