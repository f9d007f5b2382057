"""Drivers that block a thread which moves memory behind an event: found out with the first moves,
and the mover then waits itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import EVICT, EXECUTE, PREFETCH, Command, Event, FakeDaemon
from discarding import DEAD, discard
from runtime_tools import Ran

Run = Callable[..., Ran]
SAYS = "the driver blocks a thread that moves memory behind an event"


def each_launch(*moves: Command) -> Callable[[Event], list[Command]]:
    """One move a launch, which follows it."""
    left = list(moves)

    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE or not left:
            return []
        left[0].after = left[0].cause = event.sequence
        return [left.pop(0)]

    return decide


def moves(count: int) -> list[Command]:
    return [Command((EVICT, PREFETCH)[i % 2], first=2 * i) for i in range(count)]


# A launch, a marker behind it, and the move.
STEP = """
def step(n):
    execute(); synchronise()
    return wait_calls(lambda all: sum(c.startswith("prefetch") for c in all) >= n)
enter(); allocate(64)
"""


def test_a_driver_that_defers_is_asked_once(run: Run, runtime_folder: Path) -> None:
    with FakeDaemon(runtime_folder, each_launch(*moves(3))) as daemon:
        ran = run(
            STEP + "tell(calls=[step(1), step(1), step(1)])", DEEPUM_MOVES="auto", DEEPUM_LOG="2"
        )
        daemon.finished()
    first, *later = ran.facts()["calls"]
    # The stream of the move waits for an event that a value completes, and for nothing when that
    # has been found out.
    gate = next(i for i, call in enumerate(first) if call.startswith("gate"))
    gate_event = first[gate].split()[1]
    record = next(
        call for call in first[gate:] if call.startswith("record") and call.split()[2] == gate_event
    )
    mover = next(call.split()[1] for call in first if call.startswith("prefetch"))
    assert f"wait {mover} {record.split()[1]}" in first
    assert not any(call.startswith("gate") for calls in later for call in calls)
    assert SAYS not in ran.err


def test_one_that_blocks_is_called_once_all_that_a_move_follows_is_done(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""{STEP}
call("prefetch_delay", 40); asked = [step(1), step(1), step(1)]; call("prefetch_delay", 0)
call("complete", 0); execute(); synchronise(); time.sleep(0.2); early = calls()
call("complete", 1)
tell(asked=asked, early=early, late=wait_calls(lambda all: any(c.startswith("prefetch") for c in all)))
"""
    with FakeDaemon(runtime_folder, each_launch(*moves(4))) as daemon:
        ran = run(snippet, DEEPUM_MOVES="auto", DEEPUM_LOG="2")
        daemon.finished()
    facts = ran.facts()
    assert all(sum(call.startswith("gate") for call in calls) == 1 for calls in facts["asked"])
    assert ran.err.count(SAYS) == 1
    assert not any(call.startswith(("prefetch", "gate")) for call in facts["early"])
    assert not any(call.startswith("gate") for call in facts["late"])


def test_a_thread_that_was_held_up_once_is_no_proof(run: Run, runtime_folder: Path) -> None:
    snippet = f"""{STEP}
call("prefetch_delay", 40); asked = [step(1), step(1)]; call("prefetch_delay", 0); asked.append(step(1))
call("complete", 0); execute(); synchronise()
tell(asked=asked, late=wait_calls(lambda all: any(c.startswith("prefetch") for c in all)))
"""
    with FakeDaemon(runtime_folder, each_launch(*moves(4))) as daemon:
        ran = run(snippet, DEEPUM_MOVES="auto", DEEPUM_LOG="2")
        daemon.finished()
    assert all(any(call.startswith("gate") for call in calls) for calls in ran.facts()["asked"])
    assert SAYS not in ran.err and any(call.startswith("wait") for call in ran.facts()["late"])


@pytest.mark.parametrize(("settings", "refused"), [("stream", 0), ("auto", 801)])
def test_nothing_is_asked_where_it_is_settled_or_cannot_be(
    run: Run, runtime_folder: Path, settings: str, refused: int
) -> None:
    snippet = f"""{STEP}
call("register_error", {refused}); calls = step(1); call("complete", 0); tell(calls=calls + step(1))
"""
    with FakeDaemon(runtime_folder, each_launch(*moves(2))) as daemon:
        calls = run(snippet, DEEPUM_MOVES=settings).facts()["calls"]
        daemon.finished()
    assert not any(call.startswith(("gate", "register")) for call in calls)
    # The second behind an event that has not come.
    assert sum(call.startswith("wait") for call in calls) == 2


def test_what_has_been_done_goes_in_one_call_also_where_some_is_waited_for(
    run: Run, runtime_folder: Path
) -> None:
    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        out = [Command(EVICT, first=4 * i, after=event.sequence, id=i + 1) for i in range(4)]
        return [
            *out,
            *(Command(PREFETCH, first=4 * i + 2, after_move=i + 1, id=i + 10) for i in range(4)),
        ]

    snippet = """
enter(); allocate(64); call("batches"); execute(); synchronise()
tell(calls=wait_calls(lambda all: sum("device 0" in c for c in all) >= 1))
"""
    with FakeDaemon(runtime_folder, decide) as daemon:
        calls = run(snippet, DEEPUM_MOVES="host").facts()["calls"]
        daemon.finished()
    assert [call.split()[0] for call in calls if call.endswith(("host", "device 0"))] == [
        "batch",
        "batch",
    ]


def test_discards_are_asked_for_themselves(run: Run, runtime_folder: Path) -> None:
    snippet = f"""{DEAD}
def step():
    execute(); synchronise()
    return wait_calls(lambda all: any(c.startswith("discard") for c in all))
call("discard_delay", 40); asked = [step(), step(), step()]; call("discard_delay", 0)
call("complete", 0); execute(); synchronise(); time.sleep(0.2); early = calls()
call("complete", 1)
tell(asked=asked, early=early, late=wait_calls(lambda all: any(c.startswith("discard") for c in all)))
"""
    with FakeDaemon(
        runtime_folder, each_launch(*(discard(first=4 * i) for i in range(4)))
    ) as daemon:
        ran = run(snippet, DEEPUM_MOVES="auto", DEEPUM_LOG="2")
        daemon.finished()
    facts = ran.facts()
    assert all(any(call.startswith("gate") for call in calls) for calls in facts["asked"])
    assert ran.err.count(SAYS) == 1
    assert not any(call.startswith("discard") for call in facts["early"])
