"""What the program tells of the free memory of its devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from daemon_side import DEVICE, EXECUTE, FREE_MEMORY, WANTS_FREE_MEMORY, Command, Event, FakeDaemon
from runtime_tools import Ran

Run = Callable[..., Ran]
MIB = 1 << 20
ALL = (1 << 64) - 1
INTERVAL = 64  # launches


class Readings:
    """A daemon that wants them from the first launch on, and what it was told."""

    def __init__(
        self, folder: Path, run: Run, snippet: str, wanted: bool = True, **settings: str
    ) -> None:
        def decide(event: Event) -> list[Command]:
            if event.kind == EXECUTE and wanted:
                daemon.session().store(WANTS_FREE_MEMORY, 1, "I")
            return []

        with FakeDaemon(folder, decide) as daemon:
            self.facts = run(
                snippet + "\ntell(calls=calls())", **{"DEEPUM_SYNC": "1", **settings}
            ).facts()
            self.events = daemon.finished().events
        self.launches = [event.sequence for event in self.events if event.kind == EXECUTE]
        self.readings = [event.words for event in self.events if event.kind == FREE_MEMORY]


def test_it_tells_what_is_free_and_how_far_the_gpu_is(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(64); execute()
for _ in range(9): execute()
call("free_memory", 700); call("complete_events", 2); call("read_free_memory")
call("complete_events", 3); call("read_free_memory")
call("complete", 0); call("read_free_memory")
"""
    found = Readings(runtime_folder, run, snippet)
    first, second, third = found.readings
    at = found.launches
    # A marker behind every second launch.
    assert (first[0], first[2:]) == (700 * MIB, (at[3], at[5]))
    assert second[2:] == (at[5], at[7])
    assert third[2:] == (0, at[1])


def test_when_all_is_done_it_says_so(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(64); execute(); execute(); execute(); execute(stream=1); call("read_free_memory")
synchronise(); call("read_free_memory")
"""
    found = Readings(runtime_folder, run, snippet)
    before, after = (words[2:] for words in found.readings)
    assert before == (0, found.launches[3]), "the second stream has no marker yet"
    assert after == (ALL, found.launches[3])


def test_nobody_asks_the_driver_while_it_is_not_wanted(run: Run, runtime_folder: Path) -> None:
    snippet = "enter(); allocate(64)\nfor _ in range(200): execute()\ncall('read_free_memory')"
    found = Readings(runtime_folder, run, snippet, wanted=False)
    assert found.readings == []
    assert sum(call.startswith("record") for call in found.facts["calls"]) == 200 // 16


def test_it_is_told_every_so_many_launches(run: Run, runtime_folder: Path) -> None:
    found = Readings(
        runtime_folder, run, f"enter(); allocate(64)\nfor _ in range({3 * INTERVAL + 1}): execute()"
    )
    assert len(found.readings) == 3


def test_it_is_that_of_the_context_at_hand(run: Run, runtime_folder: Path) -> None:
    snippet = (
        "enter(); allocate(64); execute(); call('device_of_context', 1); call('read_free_memory')"
    )
    assert Readings(runtime_folder, run, snippet).readings == []


@pytest.mark.parametrize(
    ("settings", "capacity", "reserve"),
    [
        ({}, 15 * 1024 - 128, 128),
        ({"DEEPUM_GPU_RESERVE": "0"}, 15 * 1024, 0),
        ({"DEEPUM_GPU_RESERVE": "512MiB"}, 15 * 1024 - 512, 512),
        ({"DEEPUM_GPU_RESERVE": "12GiB"}, 15 * 960, 960),  # a 16th of what was free
        ({"DEEPUM_GPU_MEMORY": "8GiB"}, 8 * 1024, 128),
    ],
)
def test_a_reserve_stays_free(
    run: Run, runtime_folder: Path, settings: dict[str, str], capacity: int, reserve: int
) -> None:
    found = Readings(
        runtime_folder,
        run,
        "enter(); allocate(64); execute(); call('read_free_memory')",
        **dict[str, Any](settings),
    )
    (device,) = (event.words for event in found.events if event.kind == DEVICE)
    assert device[1] == capacity * MIB
    assert found.readings[0][1] == reserve * MIB
