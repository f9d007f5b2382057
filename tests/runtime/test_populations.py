"""Populations have a lane of their own, and launches are held for what comes by either. Exact
driver calls, in lock-step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import DISCARD, EVICT, HOLD, MOVED, POPULATE, PREFETCH, Command
from discarding import lock_step
from runtime_tools import Ran

Run = Callable[..., Ran]


def waiting(kind: int, on: int) -> Command:
    """Names no blocks: all behind it in its direction waits for that command."""
    return Command(kind, count=0, after_move=on)


def test_a_population_that_waits_for_a_discard_does_not_hold_up_a_prefetch_behind_it(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [],
        1: [
            Command(DISCARD),
            waiting(POPULATE, 1),
            Command(POPULATE, first=8),
            Command(PREFETCH, first=12),
        ],
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls == [
        "launch s0",
        *["discard m1 4096+2 host", "record e1 m1"],
        *["wait m2 e1", "prefetch m2 4112+2 device 0"],
        *["prefetch m3 4120+2 device 0", "launch s0"],
    ]


@pytest.mark.parametrize(("kind", "other"), [(POPULATE, PREFETCH), (PREFETCH, POPULATE)])
def test_what_waits_for_a_launch_holds_up_its_own_kind_only(
    run: Run, runtime_folder: Path, kind: int, other: int
) -> None:
    """An eviction waits for the launch at hand, and what is brought waits for the eviction."""
    plan = {
        0: [
            Command(EVICT, first=0, after=-1),
            Command(kind, first=4, after_move=1),
            Command(kind, first=8),
            Command(other, first=12),
        ]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == ["prefetch m1 4120+2 device 0", "launch s0"]


def test_a_launch_is_held_for_both(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [],
        1: [
            *[Command(PREFETCH, first=0), Command(POPULATE, first=8)],
            *[Command(HOLD, streams=1, after_move=1), Command(HOLD, streams=1, after_move=2)],
        ],
    }
    calls, session = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls == [
        "launch s0",
        *["prefetch m1 4112+2 device 0", "record e1 m1"],  # in a round populations go first
        *["prefetch m2 4096+2 device 0", "record e2 m2"],
        *["wait s0 e2", "wait s0 e1", "launch s0"],
    ]
    assert [event for event in session.events if event.kind == MOVED] == []


def test_without_prefetching_both_only_wait_and_a_launch_is_held_until_there_is_room(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [],
        1: [
            *[
                Command(DISCARD),
                Command(EVICT, first=4),
                waiting(POPULATE, 1),
                Command(POPULATE, first=8),
            ],
            *[Command(PREFETCH, first=12, after_move=2)],
            *[Command(HOLD, streams=1, after_move=5), Command(HOLD, streams=1, after_move=4)],
        ],
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()", DEEPUM_PREFETCH="0")
    assert [call for call in calls if "device" in call] == []
    dropped, left = calls.index("discard m1 4096+2 host"), calls.index("prefetch m2 4104+2 host")
    assert [call for call in calls[max(dropped, left) :] if call.startswith("wait m")] == [
        "wait m3 e1",
        "wait m4 e2",
    ]
    assert len([call for call in calls if call.startswith("wait s0")]) == 2
    assert calls[-1] == "launch s0"
