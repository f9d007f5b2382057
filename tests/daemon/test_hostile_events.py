"""Programs that write nonsense into their rings: the daemon counts it or ends the session, and
serves the others.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fake_program import CONTROL, EVENT_RING, FakeProgram
from running import wait_until

KINDS = [*range(16), 200]


def nonsense(random: Random, program: FakeProgram, records: int) -> int:
    """Whole records of any content; returns the sequence of the last."""
    last = 0
    for _ in range(records):
        kind = random.choice(KINDS)
        if random.random() < 0.5:
            body = random.randbytes(8 * random.randrange(12))
        else:  # small numbers mean something more often
            body = b"".join(
                struct.pack("<II", random.randrange(9), random.randrange(9))
                for _ in range(random.randrange(8))
            )
        last = program.emit(
            kind or 1, body, random.randrange(256), random.choice((0, 0, 0, 3, 16, 1 << 31))
        )
    return last


def session_figures(folder: Path, pid: int) -> dict[str, Any]:
    """The statistics of a session that ended."""
    path = folder / f"session-{pid}.json"
    assert wait_until(path.exists)
    statistics: dict[str, Any] = json.loads(path.read_text())
    return statistics


@pytest.mark.parametrize("seed", range(3))
def test_nonsense_in_whole_records_is_counted_and_the_session_goes_on(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    decent = FakeProgram(runtime_dir, pid=1)
    expected = decent.train(5)
    program = FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)}, pid=2)
    neighbour = FakeProgram(runtime_dir, pid=3)
    answers = neighbour.train(2)
    for _ in range(40):
        program.wait_decided(nonsense(random, program, 1000))
        program.commands()
    assert not program.daemon_left
    answers += neighbour.train(3, set_up=False)
    assert answers == expected
    for one in (decent, program, neighbour):
        one.close()
    core = session_figures(tmp_path, 2)["core"]
    assert core["events"] == 40_000
    assert 10_000 < core["malformed_events"] <= 40_000


@pytest.mark.parametrize("seed", range(4))
def test_scribbled_memory_ends_a_session_at_most(
    daemon: subprocess.Popen[str], runtime_dir: Path, tmp_path: Path, seed: int
) -> None:
    """Anywhere: the control page, lengths, positions."""
    random = Random(seed)
    programs = [
        FakeProgram(runtime_dir, {"DEEPUM_STATS_DIR": str(tmp_path)}, pid=10 + i) for i in range(6)
    ]
    for program in programs:
        program.train(1)
        for _ in range(40):
            if random.random() < 0.5:
                place = random.randrange(0, CONTROL, 8)
            else:
                place = CONTROL + (program.reserved + random.randrange(-64, 256, 8)) % EVENT_RING
            value = random.choice(
                (
                    0,
                    1,
                    1 << 16,
                    random.getrandbits(64),
                    program.reserved + random.randrange(0, 4096, 8),
                    (1 << 64) - 8,
                )
            )
            struct.pack_into("<Q", program.memory, place, value)
            os.eventfd_write(program.daemon_fd, 1)
    assert daemon.poll() is None
    fresh = FakeProgram(runtime_dir, {"DEEPUM_LAUNCH_QUEUE": "0"})
    rounds = fresh.train(6)
    assert fresh.ahead(rounds[-1])
    fresh.close()
    for program in programs:
        program.close()
    # Every one of them ended in order.
    assert all(session_figures(tmp_path, 10 + i)["pid"] == 10 + i for i in range(6))
    assert daemon.poll() is None
