"""Events of many threads through the ring, and what happens when it is full."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from daemon_side import (
    ALLOCATE,
    BLOCK_ACTIVE,
    EVENT_RING_BYTES,
    EXECUTE,
    LOST,
    PREFETCH,
    Command,
    Event,
    FakeDaemon,
)
from runtime_tools import Ran

Run = Callable[..., Ran]
Start = Callable[..., "subprocess.Popen[str]"]


def test_records_of_four_threads_arrive_whole_and_in_each_threads_order(
    run: Run, runtime_folder: Path
) -> None:
    launches = 15000  # some 7 MB: the ring goes round
    with FakeDaemon(runtime_folder) as daemon:
        assert run(f"enter(); threads(4, {launches})").code == 0
        # Sequences rise, and are where they say: checked as they are taken.
        session = daemon.finished()
    following = [0, 0, 0, 0]
    for event in session.events:
        if event.kind != EXECUTE:
            continue
        hash_, stream = struct.unpack_from("<QI", event.body)
        thread, ordinal = hash_ >> 32, hash_ & 0xFFFFFFFF
        assert thread == stream and ordinal == following[thread]
        assert event.words[3:] == (hash_,) * (ordinal % 23)  # no word of another record
        following[thread] += 1
    assert following == [launches] * 4
    assert session.load(128) == session.load(64) > EVENT_RING_BYTES


def test_when_the_daemon_falls_behind_events_are_counted_and_what_lives_is_told_again(
    start: Start, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        snippet = """
import sys
enter(); allocate(8); allocate(8, at=64); free(at=64); allocate(4, at=128); block(2, at=128); tell(ready=True); sys.stdin.readline()
lost = 0
while lost < 1000: lost += emit_execute(0, 1, ranges=20) == 0
tell(lost=lost); sys.stdin.readline()
"""
        process = start(snippet)
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        session = daemon.session()
        until = time.monotonic() + 10
        while len(session.events) < 6:
            assert time.monotonic() < until
            time.sleep(0.005)
        session.paused.set()
        process.stdin.write("\n")
        process.stdin.flush()
        lost = int(process.stdout.readline().split()[-1].rstrip("}"))
        already = len(session.events)
        session.paused.clear()
        until = time.monotonic() + 10
        while sum(event.kind == BLOCK_ACTIVE for event in session.events[already:]) == 0:
            assert time.monotonic() < until
            time.sleep(0.01)
        _, err = process.communicate("\n", timeout=20)
        assert err == "" and process.returncode == 0
        events = daemon.finished().events
    tail = [event for event in events[already:] if event.kind != EXECUTE]
    assert [event.kind for event in tail] == [LOST, ALLOCATE, ALLOCATE, BLOCK_ACTIVE]
    assert tail[0].words == (lost,)


def test_a_full_command_ring_is_emptied_while_a_launch_waits(
    run: Run, runtime_folder: Path
) -> None:
    def decide(event: Event) -> list[Command]:
        return (
            [Command(PREFETCH, first=i % 32) for i in range(20000)] if event.kind == EXECUTE else []
        )

    snippet = (
        "enter(); allocate(64); execute(); n = len([c for c in calls() if "
        "c.startswith('prefetch')]); tell(n=n)"
    )
    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(snippet, DEEPUM_SYNC="1").facts()
        daemon.finished()
    assert facts["n"] == 20000 // 16  # an event behind every 32 MiB
