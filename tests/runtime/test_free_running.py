"""The mover outside lock-step: behind the program, never in its way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daemon_side import EVICT, EXECUTE, PREFETCH, Command, Event, FakeDaemon
from runtime_tools import Ran

Run = Callable[..., Ran]


def once(*commands: Command) -> Callable[[Event], list[Command]]:
    """All of it at the first launch."""
    left = list(commands)

    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        now, left[:] = left[:], []
        for command in now:
            command.after = event.sequence if command.after < 0 else command.after
        return now

    return decide


def test_a_move_goes_out_once_its_marker_is_there(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(64); execute(); time.sleep(0.3); early = calls(); synchronise()
tell(early=early, calls=wait_calls(lambda all: any(c.startswith("prefetch") for c in all)))
"""
    with FakeDaemon(runtime_folder, once(Command(EVICT, after=-1))) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert facts["early"] == ["launch s0"]
    assert [call for call in facts["calls"] if call != "synchronise"] == [
        "record e1 s0",
        "wait m1 e1",
        "prefetch m1 4096+2 host",
    ]


def test_no_more_than_the_limit_is_handed_over_until_some_is_complete(
    run: Run, runtime_folder: Path
) -> None:
    # 2 MiB each, not adjacent, 8 MiB at a time.
    moves = [Command(PREFETCH, first=2 * i) for i in range(10)]
    snippet = """
enter(); allocate(64); call("complete", 0); execute()
count = lambda all: sum(c.startswith("prefetch") for c in all)
first = wait_calls(lambda all: count(all) >= 4); time.sleep(0.2); first += calls(); asked = queries()
call("complete", 1)
tell(first=count(first), queries=asked, rest=count(wait_calls(lambda all: count(all) >= 6)))
"""
    with FakeDaemon(runtime_folder, once(*moves)) as daemon:
        facts = run(snippet, DEEPUM_HANDOVER_BYTES="8MiB").facts()
        daemon.finished()
    assert facts["first"] == 4 and facts["rest"] == 6
    assert 0 < facts["queries"] < 2000  # it looks now and then, it does not spin


def test_moves_that_no_event_can_be_recorded_behind_do_not_stop_the_rest(
    run: Run, runtime_folder: Path
) -> None:
    moves = [Command(PREFETCH, first=2 * i) for i in range(10)]
    snippet = """
enter(); allocate(64); call("complete", 0); call("event_error", 400); execute()
tell(calls=wait_calls(lambda all: sum(c.startswith("prefetch") for c in all) >= 10))
"""
    with FakeDaemon(runtime_folder, once(*moves)) as daemon:
        calls = run(snippet, DEEPUM_HANDOVER_BYTES="8MiB").facts()["calls"]
        daemon.finished()
    assert not any(call.startswith("record") for call in calls)


def test_a_full_direction_does_not_hold_up_the_other(run: Run, runtime_folder: Path) -> None:
    moves = [*(Command(EVICT, first=2 * i) for i in range(8)), Command(PREFETCH, first=30)]
    snippet = """
enter(); allocate(64); call("complete", 0); execute()
tell(calls=wait_calls(lambda all: any("device 0" in c for c in all)))
"""
    with FakeDaemon(runtime_folder, once(*moves)) as daemon:
        facts = run(snippet, DEEPUM_HANDOVER_BYTES="4MiB").facts()
        daemon.finished()
    assert sum("host" in call for call in facts["calls"]) == 2


def test_a_free_does_not_meet_a_move_under_way(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(4); call("prefetch_delay", 200); execute(); time.sleep(0.1)
free(); tell(calls=calls())
"""
    with FakeDaemon(runtime_folder, once(Command(PREFETCH))) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert facts["calls"] == ["launch s0", "prefetch m1 4096+2 device 0"]


def test_launches_do_not_wait_for_the_mover(run: Run, runtime_folder: Path) -> None:
    snippet = """
enter(); allocate(64); call("prefetch_delay", 1500); began = time.monotonic()
for _ in range(100): execute()
synchronise(); tell(seconds=time.monotonic() - began)
"""
    with FakeDaemon(runtime_folder, once(Command(PREFETCH))) as daemon:
        assert run(snippet).facts()["seconds"] < 1
        daemon.finished()


def test_events_are_created_in_the_relaxed_capture_mode(run: Run, runtime_folder: Path) -> None:
    moves = [Command(EVICT, after=-1), Command(PREFETCH, first=4, after_move=1)]
    snippet = """
enter(); allocate(64); execute(); synchronise()
tell(calls=wait_calls(lambda all: any("device 0" in c for c in all)))
"""
    with FakeDaemon(runtime_folder, once(*moves)) as daemon:
        calls = run(snippet).facts()["calls"]
        daemon.finished()
    assert not any("relaxed" in call or "blocking" in call or "context" in call for call in calls)


def test_streams_that_share_an_id_get_a_marker_each_however_many_come_at_once(
    run: Run, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        ran = run("enter(); tell(unmarked=call('unmarked_of_shared', 4, 2000))", DEEPUM_SYNC="0")
        daemon.finished()
    assert ran.facts() == {"unmarked": 0}
