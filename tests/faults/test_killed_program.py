"""The program is killed between any two of its steps: the daemon lives on, holds nothing of it, and
the next program works.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from fault_tools import Training, daemon_of, nothing_left_behind, sessions
from running import holders, lock_of, wait_until

POINTS = 160


def test_killed_between_any_two_steps_it_leaves_nothing(
    training: Training, daemon: int, runtime_dir: Path, stats: Path
) -> None:
    whole = training.run(3, 2, 4)
    assert whole.right
    steps = whole.calls["steps"][0]
    assert steps > 200
    # Each step of the beginning, then evenly; counted by all threads, so that a few may fall beyond
    # the end.
    points = sorted({*range(1, 60), *range(60, steps, max(1, steps // (POINTS - 60)))})
    killed = 0
    with nothing_left_behind(runtime_dir, daemon):
        for step in points:
            ran = training.run(3, 2, 4, FAULT_KILL=step)
            killed += ran.code == -signal.SIGKILL
            assert ran.right or ran.code == -signal.SIGKILL, (step, ran)
    assert killed > 0.9 * len(points)
    reports = sessions(stats)
    assert all(session["core"]["malformed_events"] == 0 for session in reports)
    assert len({session["pid"] for session in reports}) > len(points) // 2, (
        "most were killed after their session began"
    )
    after = training.run(3, 2, 4)
    assert after.right and after.calls["steps"][0] > 200, "the next one is served"
    (served,) = [session for session in sessions(stats) if session not in reports]
    assert served["core"]["commands"] > 0


def test_killed_while_its_session_begins_it_leaves_a_daemon_that_ends_by_itself(
    training: Training, runtime_dir: Path
) -> None:
    """Nobody else is there: the killed program was about to start the daemon, was starting it, or
    had just done so.
    """
    for step in range(4, 34, 5):
        ran = training.run(2, 1, 4, FAULT_KILL=step, DEEPUM_DAEMON_IDLE=1)
        assert ran.code == -signal.SIGKILL
    assert wait_until(lambda: not holders(lock_of(runtime_dir)))
    stays = {lock_of(runtime_dir).name, "daemon.log"}
    assert wait_until(
        lambda: (
            {path.name for path in runtime_dir.iterdir() if not path.name.startswith("managed-")}
            <= stays
        )
    )
    assert training.run(2, 1, 4).right


@pytest.mark.parametrize("kind", [signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_ended_by_a_signal_it_is_reported_as_far_as_it_came(
    training: Training, daemon: int, runtime_dir: Path, stats: Path, kind: signal.Signals
) -> None:
    with nothing_left_behind(runtime_dir, daemon):
        process = training.start(100000, 2, 5)
        assert process.stdout is not None
        while process.stdout.readline() != "round 3\n":
            continue
        process.send_signal(kind)
        assert training.finish(process).code == -kind
        (session,) = sessions(stats)
    assert (
        session["pid"] == process.pid
        and session["core"]["launches"] >= 20
        and session["warnings"] == []
    )


def test_a_stopped_program_loses_neither_its_session_nor_its_numbers(
    training: Training, runtime_dir: Path, stats: Path
) -> None:
    process = training.start(60, 2, 5)
    assert process.stdout is not None
    process.stdout.readline()
    for _ in range(5):
        process.send_signal(signal.SIGSTOP)
        assert wait_until(
            lambda: Path(f"/proc/{process.pid}/stat").read_text().rsplit(")")[-1].split()[0] == "T"
        )
        process.send_signal(signal.SIGCONT)
        process.stdout.readline()
    assert training.finish(process).right
    (session,) = sessions(stats)
    assert session["core"]["launches"] > 600 and session["core"]["events_lost"] == 0
    assert json.dumps(session["warnings"]) == "[]" and daemon_of(runtime_dir)
