"""Discards: committed where the memory is inactive, and done before anybody uses it again. Exact
driver calls, in lock-step.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import EXECUTE, MOVED, PREFETCH, Command, Event, FakeDaemon
from discarding import DEAD, Run, discard, lock_step
from runtime_tools import Ran

Start = Callable[..., subprocess.Popen[str]]


def test_dead_memory_is_dropped_behind_its_last_use_on_every_stream(
    run: Run, runtime_folder: Path
) -> None:
    plan = {2: [discard(after=-2, streams=0b11)]}
    calls, session = lock_step(run, runtime_folder, plan, "execute(0); execute(1); execute(0)")
    assert calls[:2] == ["launch s0", "launch s1"] and calls[-1] == "launch s0"
    drop = calls.index("discard m1 4096+8 host")
    marks = [call.split()[1] for call in calls[:drop] if call.startswith("record")]
    assert len(marks) == 2 and all(f"wait m1 {mark}" in calls[:drop] for mark in marks)
    assert not [event for event in session.events if event.kind == MOVED]


def test_default_streams_of_other_devices_wait_for_it_in_their_own_context(
    run: Run, runtime_folder: Path
) -> None:
    """Each device's default stream has the one handle."""
    plan = {1: [discard(after=-2, streams=0b11, device=1)]}
    snippet = "execute(0, handle=99); set_context(0xd0); enter(1); execute(1, handle=99); block(1)"
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    assert calls == [
        *[
            "launch s99",
            "push c0",
            "record e1 s99",
            "pop",
            "wait m1 e1",
            "discard m1 4096+8 host",
            "record e2 m1",
        ],
        *["wait s99 e2", "launch s99"],  # nothing was launched on it before
        *["push c0", "wait s99 e2", "pop", "wait s99 e2"],
    ]


def test_what_is_active_again_in_time_is_not_dropped(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, session = lock_step(run, runtime_folder, plan, "execute(); block(1, at=7); execute()")
    assert calls == ["launch s0", "launch s0"]
    assert [event.moved[1] for event in session.events if event.kind == MOVED] == ["cancelled"]


def test_memory_that_pytorch_never_reported_is_not_dropped(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard(slot=1)]}
    calls, _ = lock_step(run, runtime_folder, plan, "allocate(64, at=512); execute(); execute()")
    assert calls == ["launch s0", "launch s0"]


def test_every_stream_waits_before_the_memory_is_used_again(run: Run, runtime_folder: Path) -> None:
    plan = {2: [discard()]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(0); execute(1); execute(0); block(2, at=6); execute(1)"
    )
    assert calls[2:] == [
        "discard m1 4096+8 host",
        "record e1 m1",
        "launch s0",
        "wait s0 e1",
        "wait s1 e1",
        "launch s1",
    ]


def test_memory_beside_it_is_used_at_once(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); block(2, at=8); execute()"
    )
    assert not any(call.startswith("wait s") for call in calls)


def test_streams_that_wait_once_need_not_wait_again(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); block(2, at=0); block(2, at=4); execute()"
    )
    assert calls.count("wait s0 e1") == 1


# Two devices, with a discard of memory of its own each: that of device 1 has the later id.
TWO_DEVICES = "execute(0, handle=99); set_context(0xd0); enter(1); execute(1, handle=99);"
TWO_DISCARDS = [discard(after=-2, streams=0b11), discard(after=-2, streams=0b11, first=8, device=1)]


def test_streams_that_wait_for_one_device_wait_for_the_other_as_well(
    run: Run, runtime_folder: Path
) -> None:
    """Each device has a lane of discards: a later one of device 1 says nothing of an earlier one of
    device 0.
    """
    calls, _ = lock_step(
        run, runtime_folder, {1: TWO_DISCARDS}, f"{TWO_DEVICES} block(2, at=16); calls(); block(2)"
    )
    assert len({call.split()[2] for call in calls if call.startswith("wait s99")}) == 1, (
        "that of device 0"
    )


def test_a_stream_seen_for_the_first_time_waits_for_every_device(
    run: Run, runtime_folder: Path
) -> None:
    calls, _ = lock_step(
        run, runtime_folder, {1: TWO_DISCARDS}, f"{TWO_DEVICES} calls(); execute(5)"
    )
    assert len({call for call in calls if call.startswith("wait s5 ")}) == 2


def test_a_graph_waits_for_every_device(run: Run, runtime_folder: Path) -> None:
    calls, _ = lock_step(
        run, runtime_folder, {1: TWO_DISCARDS}, f"{TWO_DEVICES} calls(); call('graph', 0)"
    )
    assert len({call for call in calls if call.startswith("wait s0 ")}) == 2


def test_the_end_of_a_context_ends_its_own_discards_only(run: Run, runtime_folder: Path) -> None:
    """It waits for them; those of the other device are waited for by whoever uses the memory."""
    plan = {1: TWO_DISCARDS}
    end = (
        "calls(); call('context_ending', 0xd0); call('context_destroyed'); before = calls(); "
        "block(2); block(2, at=16)"
    )
    snippet = f"{TWO_DEVICES} {end}; after = calls(); tell(before=before, after=after)"
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        launches.extend([event.sequence] if event.kind == EXECUTE else [])
        commands = plan.get(len(launches) - 1, []) if event.kind == EXECUTE else []
        for command in commands:
            command.cause, command.after = event.sequence, launches[-2]
        return commands

    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(f"{DEAD}{snippet}", DEEPUM_SYNC="1").facts()
        daemon.finished()
    assert [call.split()[0] for call in facts["before"]] == ["await"]
    waited = {call.split()[2] for call in facts["after"] if call.startswith("wait s99")}
    assert len(waited) == 1 and waited != {facts["before"][0].split()[1]}


def test_any_other_context_that_ends_leaves_discards_as_they_are(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [discard()]}
    end = (
        "call('context_ending', 0xe0); set_context(0xe0); call('context_destroyed'); "
        "set_context(0xc0)"
    )
    calls, _ = lock_step(
        run, runtime_folder, plan, f"execute(); execute(); calls(); {end}; block(2); execute()"
    )
    assert [call.split()[0] for call in calls] == ["wait", "launch"]


@pytest.mark.parametrize(
    ("ends", "dropped"), [("", 1), ("; call('context_stays', 0xc0)", 2)], ids=["ends", "stays"]
)
def test_nothing_is_dropped_in_a_context_that_is_about_to_end(
    run: Run, runtime_folder: Path, ends: str, dropped: int
) -> None:
    plan = {1: [discard()], 2: [discard(first=8)]}
    calls, _ = lock_step(
        run,
        runtime_folder,
        plan,
        f"execute(); execute(); call('context_ending', 0xc0){ends}; execute()",
    )
    assert len([call for call in calls if call.startswith("discard")]) == dropped


def test_a_stream_seen_for_the_first_time_waits_before_its_first_launch(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(0); execute(0); block(2); execute(5)")
    assert calls[-3:] == ["wait s0 e1", "wait s5 e1", "launch s5"]


def test_out_of_lock_step_it_is_the_same(run: Run, runtime_folder: Path) -> None:
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            launches.append(event.sequence)
        return (
            [discard(after=launches[0], cause=event.sequence)]
            if event.kind == EXECUTE and len(launches) == 2
            else []
        )

    with FakeDaemon(runtime_folder, decide):
        snippet = """execute(0); before = calls()
while not any(call.startswith("discard") for call in before): execute(0); time.sleep(0.001); before += calls()
block(2); execute(5); tell(before=before, calls=calls())"""
        ran = run(f"{DEAD}{snippet}", DEEPUM_SYNC="0", DEEPUM_MARKER_INTERVAL="1")
    before, after = ran.facts()["before"], ran.calls()
    assert before.index("discard m1 4096+8 host") > [call.split()[0] for call in before].index(
        "wait"
    )
    (event,) = {call.split()[2] for call in after if call.startswith("wait s")}
    assert (
        after.index(f"wait s0 {event}") < after.index(f"wait s5 {event}") < after.index("launch s5")
    )


@pytest.mark.parametrize(("use", "stream"), [("block(2)", "s0"), ("call('graph', 5)", "s5")])
def test_a_discard_that_the_driver_takes_long_for_is_waited_for(
    run: Run, runtime_folder: Path, use: str, stream: str
) -> None:
    """Out of lock-step the program may want the memory back while the mover is in the driver with
    it; a graph may always have used it.
    """
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            launches.append(event.sequence)
        return (
            [discard(after=launches[0], cause=event.sequence)]
            if event.kind == EXECUTE and len(launches) == 2
            else []
        )

    with FakeDaemon(runtime_folder, decide) as daemon:
        snippet = """call('discard_delay', 4000); execute(0); execute(0)
wait_calls(lambda calls: any(call.startswith("wait m1") for call in calls)); time.sleep(0.2)
USE; execute(0); tell(calls=calls())"""
        calls = run(
            f"{DEAD}{snippet}".replace("USE", use), DEEPUM_SYNC="0", DEEPUM_MARKER_INTERVAL="1"
        ).calls()
        daemon.finished()
    drop = calls.index("discard m1 4096+8 host")
    (event,) = {
        call.split()[1]
        for call in calls[drop:]
        if call.startswith("record") and call.endswith("m1")
    }
    assert drop < calls.index(f"wait {stream} {event}") < calls.index("launch s0")


def test_nothing_is_dropped_once_a_stream_waited_for_a_value(
    run: Run, runtime_folder: Path
) -> None:
    """Another stream may have to write it, and must not wait for a discard that waits for the
    first.
    """
    plan = {1: [discard()], 2: [discard(first=8)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); call('value_wait', 0); execute()"
    )
    assert [call for call in calls if call.startswith("discard")] == ["discard m1 4096+8 host"]


def test_nothing_is_dropped_while_a_stream_cannot_wait(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); call('capturing', 1); execute()")
    assert calls == ["launch s0", "launch s0"]


def test_a_stream_that_cannot_wait_by_then_makes_the_report_wait(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); call('capturing', 1); block(2); execute()"
    )
    assert calls[-2:] == ["await e1", "launch s0"]


def test_memory_that_ends_waits_for_its_discards(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute(); free()")
    assert calls[-2:] == ["launch s0", "await e1"]


def test_a_graph_waits_and_nothing_is_dropped_from_then_on(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()], 2: [discard(first=8)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); call('graph', 0); execute()"
    )
    assert calls[-3:] == ["launch s0", "wait s0 e1", "launch s0"]


def test_a_prefetch_of_nothing_makes_those_behind_it_wait_for_a_discard(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [discard(), Command(PREFETCH, count=0, after_move=1), Command(PREFETCH, first=8)]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls == [
        "launch s0",
        *["discard m1 4096+8 host", "record e1 m1"],
        *["wait m2 e1", "prefetch m2 4112+2 device 0"],
        "launch s0",
    ]


def test_a_discard_that_fails_is_waited_for_by_nobody(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()]}
    calls, session = lock_step(
        run,
        runtime_folder,
        plan,
        "execute(); call('prefetch_error', 1); execute(); block(2); execute()",
    )
    assert not any(call.startswith("wait s") for call in calls)
    assert [event.moved[1] for event in session.events if event.kind == MOVED] == ["failed"]


def test_without_markers_nothing_is_dropped(run: Run, runtime_folder: Path) -> None:
    """What was launched before might still read it."""
    plan = {i: [discard(after=-1)] for i in range(4, 8)}
    calls, session = lock_step(
        run, runtime_folder, plan, "call('event_error', 400)\nfor _ in range(9): execute()"
    )
    assert calls == ["launch s0"] * 9
    assert [event.moved[1] for event in session.events if event.kind == MOVED] == ["cancelled"] * 4


def test_a_marker_that_could_not_be_recorded_once_is_not_forgotten(
    run: Run, runtime_folder: Path
) -> None:
    plan = {2: [discard(after=-3)], 3: [discard(first=8, after=-3)]}
    snippet = (
        "execute(); execute(); call('event_error', 400); execute(); call('event_error', 0); "
        "execute()"
    )
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    assert calls[:3] == ["launch s0"] * 3
    assert calls.index("wait m1 e1") < calls.index("discard m1 4096+8 host")


def test_nothing_is_dropped_behind_a_stream_that_ended_without_a_marker(
    run: Run, runtime_folder: Path
) -> None:
    plan = {2: [discard(after=-2, streams=0b10)]}
    snippet = (
        "execute(0); execute(1); set_context(0xd0); call('push_error', 201); call('destroy', 1); "
        "set_context(0xc0); execute(0)"
    )
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    assert calls == ["launch s0", "launch s1", "launch s0"]


def test_a_stream_that_ends_from_another_context_gets_its_marker_there(
    run: Run, runtime_folder: Path
) -> None:
    plan = {2: [discard(after=-2, streams=0b10)]}
    snippet = (
        "execute(0); execute(1); set_context(0xd0); call('destroy', 1); set_context(0xc0); "
        "execute(0)"
    )
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    assert calls[2:7] == ["push c0", "record e1 s1", "pop", "wait m1 e1", "discard m1 4096+8 host"]


@pytest.mark.parametrize("use", ["execute(5)", "call('graph', 5)"])
def test_a_stream_that_refuses_to_wait_makes_its_thread_wait(
    run: Run, runtime_folder: Path, use: str
) -> None:
    plan = {1: [discard()]}
    calls, _ = lock_step(
        run, runtime_folder, plan, f"execute(); execute(); block(2); call('wait_error', 999); {use}"
    )
    assert [call for call in calls if call != "launch s5"][-2:] == ["wait s0 e1", "await e1"]


def test_a_discard_is_waited_for_when_the_daemon_is_gone(run: Run, runtime_folder: Path) -> None:
    launches = 0

    def decide(event: Event) -> list[Command]:
        nonlocal launches
        launches += event.kind == EXECUTE
        if launches == 3:
            daemon.session().connection.shutdown(2)
        return [discard(cause=event.sequence)] if event.kind == EXECUTE and launches == 2 else []

    with FakeDaemon(runtime_folder, decide) as daemon:
        snippet = (
            f"{DEAD}execute(); execute(); block(2)\nwhile execute(): time.sleep(0.01)\ncalls(); "
            f"execute(5); tell(calls=calls())"
        )
        ran = run(snippet, DEEPUM_SYNC="1")
    assert "it is gone" in ran.err
    assert ran.calls() == ["wait s5 e1", "launch s5"]


def test_a_discard_that_comes_late_does_not_meet_a_later_use(
    run: Run, runtime_folder: Path
) -> None:
    """The memory was handed out, launched on and given back since it was decided: nobody said to
    wait for that.
    """
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            launches.append(event.sequence)
        return (
            [discard(after=launches[0], cause=launches[0])]
            if event.kind == EXECUTE and len(launches) == 3
            else []
        )

    with FakeDaemon(runtime_folder, decide) as daemon:
        snippet = (
            f"{DEAD}execute(0); block(1, at=6); execute(1); unblock(1, at=6); execute(0); "
            f"tell(calls=calls())"
        )
        assert not any(call.startswith("discard") for call in run(snippet, DEEPUM_SYNC="1").calls())
        assert [event.moved[1] for event in daemon.finished().events if event.kind == MOVED] == [
            "cancelled"
        ]


def test_a_block_that_is_taken_back_in_another_size_is_not_dropped(
    run: Run, runtime_folder: Path
) -> None:
    """PyTorch takes back what it handed out; a report that says something else is not believed."""
    plan = {1: [discard(first=10, blocks=1)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "block(4, at=20); execute(); unblock(2, at=20); execute()"
    )
    assert calls == ["launch s0", "launch s0"]


def test_the_child_of_a_fork_waits_for_no_discard(run: Run, runtime_folder: Path) -> None:
    """It cannot use the GPU, and the mover that might give the discard to the driver is not there;
    its parent goes on waiting.
    """
    fork = """calls()
child = os.fork()
if child == 0:
    block(2); free(); tell(child=calls()); os._exit(0)
assert os.waitpid(child, 0)[1] == 0
block(2); tell(parent=calls())"""
    launches = 0

    def decide(event: Event) -> list[Command]:
        nonlocal launches
        launches += event.kind == EXECUTE
        return [discard(cause=event.sequence)] if event.kind == EXECUTE and launches == 2 else []

    with FakeDaemon(runtime_folder, decide):
        facts = run(f"{DEAD}execute(); execute(); {fork}", DEEPUM_SYNC="1").facts()
    assert facts == {"child": [], "parent": ["wait s0 e1"]}


def test_memory_that_is_about_to_end_is_not_dropped_any_more(
    run: Run, runtime_folder: Path
) -> None:
    """It waits for the discard that is with the driver; the next one would come too late for it."""
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        launches.extend([event.sequence] if event.kind == EXECUTE else [])
        if event.kind != EXECUTE or len(launches) != 2:
            return []
        return [
            discard(cause=event.sequence, after=launches[0]),
            discard(cause=event.sequence, first=8),
        ]

    with FakeDaemon(runtime_folder, decide) as daemon:
        snippet = """call('discard_delay', 100); call('await_delay', 300); execute(); execute()
wait_calls(lambda calls: any(call.startswith("wait m1") for call in calls)); free(); tell(calls=calls())"""
        calls = run(f"{DEAD}{snippet}", DEEPUM_SYNC="0", DEEPUM_MARKER_INTERVAL="1").calls()
        events = daemon.finished().events
    assert [call for call in calls if call.startswith("discard")] == ["discard m1 4096+8 host"]
    assert [event.moved[1] for event in events if event.kind == MOVED] == ["stale"]


def test_a_launch_that_the_ring_had_no_room_for_is_waited_for(
    start: Start, runtime_folder: Path
) -> None:
    """The daemon, which says what a discard comes after, does not know of it, nor that its stream
    was ever launched on.
    """
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        after = (
            [event.sequence] if event.kind == EXECUTE and event.words[1] & 0xFFFFFFFF == 0 else []
        )
        launches.extend(after)
        return (
            [discard(after=event.sequence, cause=event.sequence)]
            if after and len(launches) == 2
            else []
        )

    with FakeDaemon(runtime_folder, decide) as daemon:
        snippet = f"""import sys
{DEAD}execute(0); tell(ready=True); sys.stdin.readline()
while emit_execute(2, 1, ranges=20): pass
while emit_execute(2, 1): pass
tell(lost=execute(1)); sys.stdin.readline()
so_far = calls()
while not execute(0): time.sleep(0.01)
tell(calls=so_far + wait_calls(lambda calls: any(call.startswith("discard") for call in calls)))"""
        process = start(snippet, DEEPUM_SYNC="0", DEEPUM_MARKER_INTERVAL="1")
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        session = daemon.session()
        until = time.monotonic() + 10
        while not launches:
            assert time.monotonic() < until
            time.sleep(0.005)
        session.paused.set()
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == '{"lost": 0}\n'
        session.paused.clear()
        out, err = process.communicate("\n", timeout=20)
    calls = Ran(process.returncode, out, err).calls()
    (marker,) = [
        call.split()[1]
        for call in calls[calls.index("launch s1") :]
        if call.startswith("record") and call.endswith("s1")
    ]
    assert f"wait m1 {marker}" in calls[: calls.index("discard m1 4096+8 host")]
