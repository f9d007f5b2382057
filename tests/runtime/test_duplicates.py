"""Commands that advise in stream order: what the mover asks of the driver for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import ADVISE, COLLAPSE, COPY_OUT, DROP, EVICT, PREFETCH, Command, FakeDaemon
from runtime_tools import Ran
from test_free_running import once
from test_moves import lock_step, moved

Run = Callable[..., Ran]
SET_READ_MOSTLY, UNSET_READ_MOSTLY, PREFER, UNPREFER = 1, 2, 3, 4


def stands(stream: str, where: str, *advice: tuple[int, str]) -> list[str]:
    """The stream stands still while that advice is given."""
    return [
        f"stands {stream}",
        *(f"advise {where} {what} {location}" for what, location in advice),
        "goes on",
    ]


def kept(location: str) -> list[tuple[int, str]]:
    """One copy is kept there."""
    return [(PREFER, location), (UNSET_READ_MOSTLY, location), (UNPREFER, location)]


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        (
            Command(DROP),
            [
                *stands("m1", "4096+2", *kept("host")),
                "prefetch m1 4096+2 host",
                *stands("m1", "4096+2", (SET_READ_MOSTLY, "host")),
            ],
        ),
        (
            Command(COPY_OUT),
            [*stands("m1", "4096+2", (SET_READ_MOSTLY, "host")), "prefetch m1 4096+2 host"],
        ),
        (
            Command(EVICT, advice=UNSET_READ_MOSTLY),
            [*stands("m1", "4096+2", *kept("host")), "prefetch m1 4096+2 host"],
        ),
        (Command(COLLAPSE), stands("m1", "4096+2", *kept("device 0"))),
    ],
    ids=["drop", "copy-out", "evict", "collapse"],
)
def test_in_lock_step_the_stream_stands_still_for_the_advice(
    run: Run, runtime_folder: Path, command: Command, calls: list[str]
) -> None:
    made, session = lock_step(run, runtime_folder, {0: [command]}, "execute()")
    assert made == [*calls, "launch s0"]
    assert moved(session) == []


def test_a_drop_waits_for_the_last_use_and_a_prefetch_for_the_drop(
    run: Run, runtime_folder: Path
) -> None:
    plan = {0: [Command(DROP, after=-1), Command(PREFETCH, first=8, after_move=1)]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls[:3] == ["launch s0", "record e1 s0", "wait m1 e1"]
    assert calls[3] == "stands m1" and calls[-5:] == [
        "goes on",
        "record e2 m1",
        "wait m2 e2",
        "prefetch m2 4112+2 device 0",
        "launch s0",
    ]


def test_drops_and_copies_out_hold_up_no_eviction(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [Command(DROP, after=-1), Command(COPY_OUT, first=4, after=-1), Command(EVICT, first=8)]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == ["prefetch m1 4112+2 host", "launch s0"]


def test_advice_that_follows_a_command_is_given_behind_it(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [
            Command(EVICT),
            Command(ADVISE, advice=SET_READ_MOSTLY, location=-1, after_move=1),
            Command(PREFETCH, after_move=1),
        ]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == [
        *["prefetch m1 4096+2 host", "record e1 m1", "wait m2 e1"],
        *stands("m2", "4096+2", (SET_READ_MOSTLY, "host")),
        *["prefetch m2 4096+2 device 0", "launch s0"],
    ]


def test_a_collapse_that_names_no_blocks_waits_for_those_behind_it(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [
            Command(COPY_OUT),
            Command(PREFETCH),
            Command(COLLAPSE, count=0, after_move=1),
            Command(COLLAPSE, after_move=2),
        ]
    }
    calls, session = lock_step(run, runtime_folder, plan, "execute()")
    collapsed = calls.index("stands m3")
    assert calls[collapsed:] == [*stands("m3", "4096+2", *kept("device 0")), "launch s0"]
    assert {call for call in calls[:collapsed] if call.startswith("wait m3")} == {
        "wait m3 e1",
        "wait m3 e2",
    }
    assert moved(session) == []


def test_a_host_function_that_the_driver_refuses_is_a_failed_command(
    run: Run, runtime_folder: Path
) -> None:
    plan = {0: [Command(DROP), Command(COPY_OUT, first=4), Command(COLLAPSE, first=8)]}
    calls, session = lock_step(run, runtime_folder, plan, "call('host_error', 999); execute()")
    assert calls == ["launch s0"]
    assert sorted(moved(session)) == [(i, "failed", 999) for i in (1, 2, 3)]


def test_without_gates_advice_is_given_once_all_that_it_follows_is_done(
    run: Run, runtime_folder: Path
) -> None:
    snippet = """
enter(); allocate(64); call("complete", 0); execute(); synchronise(); time.sleep(0.3); early = calls()
call("complete", 1)
tell(early=early, calls=wait_calls(lambda all: sum(" 1 host" in c for c in all) > 0))
"""
    with FakeDaemon(runtime_folder, once(Command(DROP, after=-1))) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert not any("advise" in call for call in facts["early"])
    assert not any("stands" in call for call in facts["calls"]), "no stream waits for a thread"
    assert [call for call in facts["calls"] if "advise" in call or "prefetch" in call] == [
        *(f"advise 4096+2 {what} host" for what in (PREFER, UNSET_READ_MOSTLY, UNPREFER)),
        "prefetch m1 4096+2 host",
        f"advise 4096+2 {SET_READ_MOSTLY} host",
    ]


def test_without_gates_it_waits_for_those_behind_it_too(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(64); call("complete", 0); execute(); synchronise(); time.sleep(0.3); early = calls()
call("complete", 1)
tell(early=early, calls=wait_calls(lambda all: sum(" device 0" in c for c in all) > 0))
"""
    with FakeDaemon(
        runtime_folder,
        once(Command(COPY_OUT), Command(COLLAPSE, count=0, after_move=1), Command(COLLAPSE)),
    ) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    unset = f"advise 4096+2 {UNSET_READ_MOSTLY} device 0"
    assert unset not in facts["early"]
    assert "wait m2 e2" in facts["calls"][: facts["calls"].index(unset)]
