"""Gates: out of lock-step, under pressure, launches wait on their streams for what is fetched for
them.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import (
    BLOCK_ACTIVE,
    DISCARD,
    DROP,
    EXECUTE,
    HOLD,
    MOVED,
    PREFETCH,
    Command,
    Event,
    FakeDaemon,
)
from gating import BEGIN, Decide, first, held, waits
from runtime_tools import Ran

Run = Callable[..., Ran]
Start = Callable[..., subprocess.Popen[str]]


def last_move(calls: list[str]) -> tuple[int, str]:
    """Where the last prefetch is, and the event behind it. The first launch's may come late, when
    others wait already.
    """
    at = max(i for i, call in enumerate(calls) if call.startswith("prefetch"))
    (record,) = [
        call
        for call in calls[at:]
        if call.startswith("record") and call.split()[2] == calls[at].split()[1]
    ]
    return at, record.split()[1]


def test_a_launch_waits_behind_its_gate_which_opens_behind_its_move(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""{BEGIN}
sequence = execute()
tell(sequence=sequence, began=began, calls=wait_calls(lambda all: any(c.startswith("open") and c.endswith(f" {{sequence}}") for c in all)))
"""
    # What is decided before a stream's first wait is not held.
    with FakeDaemon(runtime_folder, held(), delay=0.1) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    calls, sequence = facts["calls"], facts["sequence"]
    assert "register 1048576 3" in facts["began"]
    assert [call for call in calls if call[:4] in ("gate", "laun")] == [
        f"gate s0 w0 >= {sequence}",
        "launch s0",
    ]
    # The launches before it are let go first, then it waits for the event behind its prefetch, and
    # for nothing else.
    behind, event = last_move(calls)
    writer = next(call.split()[1] for call in calls if call.startswith("open"))
    tail = [call for call in calls[behind:] if writer in call]
    assert tail == [
        f"open {writer} w0 {sequence - 1}",
        f"wait {writer} {event}",
        f"open {writer} w0 {sequence}",
    ]


def test_each_launch_has_a_marker_that_lies_before_the_next_gate(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""{BEGIN}
for _ in range(4): execute()
tell(calls=began + wait_calls(lambda all: sum(c.startswith("prefetch") for c in all) >= 4))
"""
    with FakeDaemon(runtime_folder, held(after_own=True)) as daemon:
        calls = run(snippet).facts()["calls"]
        daemon.finished()
    program = [
        call.split()[0]
        for call in calls
        if call.split()[0] in ("gate", "launch") or call.endswith(" s0")
    ]
    assert program == ["launch", "record", *["gate", "launch", "record"] * 4]


def test_gates_are_suspended_while_no_launch_is_held(run: Run, runtime_folder: Path) -> None:
    """The second launch is the last with a gate; a later one is held, and those behind it have
    gates again. Memory is handed out at once meanwhile, and markers lie behind every launch no
    longer.
    """
    holds = first(held())
    launches: list[int] = []
    blocks: list[int] = []

    # What is decided about a launch may come before it is queued: these are decided behind it, by
    # a block of PyTorch's, and a prefetch behind them shows that the mover has seen them.
    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            launches.append(event.sequence)
            return holds(event)
        if event.kind != BLOCK_ACTIVE:
            return []
        blocks.append(event.sequence)
        hold = Command(HOLD, cause=launches[-1], count=0, streams=len(blocks) - 1)
        return [hold, Command(PREFETCH, first=8 + len(blocks), cause=event.sequence)]

    snippet = f"""{BEGIN}
def decided(at):
    block(2, at)
    behind = f" {{4096 + 18 + at}}+2 "
    return wait_calls(lambda all: any(c.startswith("prefetch") and behind in c for c in all))

sequences = [execute()]
rest = decided(0)
sequences += [execute(), execute()]
rest += decided(2)
sequences.append(execute())
tell(sequences=sequences, began=began, calls=rest + calls())
"""
    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    second, _, _, fifth = facts["sequences"]
    assert waits(facts["calls"]) == [second, fifth]
    program = [
        call.split()[0]
        for call in facts["began"] + facts["calls"]
        if call.split()[0] in ("gate", "launch")
        or (call.startswith("record") and call.endswith(" s0"))
    ]
    assert "launch launch" in " ".join(program), "not each launch has a marker"
    assert program[-4:] == ["record", "gate", "launch", "record"], (
        "what had no gate has a marker before the next one"
    )


def test_what_is_held_for_nothing_opens_with_its_decision(run: Run, runtime_folder: Path) -> None:
    snippet = f"""{BEGIN}
sequence = execute()
tell(sequence=sequence, calls=wait_calls(lambda all: any(c.startswith("open") and int(c.split()[-1]) >= sequence for c in all)))
"""
    with FakeDaemon(runtime_folder, first(held()), delay=0.01) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert waits(facts["calls"]) == [facts["sequence"]]


def test_a_launch_that_is_decided_before_its_stream_waits_opens_all_the_same(
    run: Run, runtime_folder: Path
) -> None:
    """The mover has looked by then, and nothing else wakes it."""
    snippet = f"""{BEGIN}
call("gate_delay", 300); sequence = execute(); call("gate_delay", 0)
tell(sequence=sequence, calls=wait_calls(lambda all: any(c.startswith("open") and int(c.split()[-1]) >= sequence for c in all), 0.3))
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert waits(facts["calls"]) == [facts["sequence"]]


AHEAD = 16  # launches that the GPU has before it when memory that is handed out waits for the mover


def handing_out(launches: int) -> tuple[Decide, str]:
    """So many launches that the GPU has not come to. The daemon drops what is dead at the last but
    one of all, after 1 ms, and at the last, after 2 s; behind each of the two some of that is
    handed out again.
    """
    begin, sequences, late = first(held()), [], {launches + 2: 0.001, launches + 3: 2.0}

    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            sequences.append(event.sequence)
        if event.kind == EXECUTE and len(sequences) in late:
            time.sleep(late[len(sequences)])
            blocks = {"first": 2 * (len(sequences) - launches) - 2, "count": 2}
            return [
                Command(
                    DISCARD,
                    after=sequences[-2],
                    cause=event.sequence,
                    id=10 * (len(sequences) - launches),
                    **blocks,
                )
            ]
        return begin(event)

    snippet = f"""enter(); call("discards"); allocate(64); block(64); unblock(64); execute()
wait_calls(lambda all: any(c.startswith("register") for c in all)); call("complete", 0)
for _ in range({launches}): execute()
time.sleep(0.1)
execute(); block(4, at=4); took = []
execute()
for at in (8, *range(12, 60, 4)): began = time.monotonic(); block(4, at=at); took.append(time.monotonic() - began)
time.sleep(2.2); tell(took=took, calls=calls())
"""
    return decide, snippet


def test_memory_that_is_handed_out_waits_for_the_mover_and_not_for_long(
    run: Run, runtime_folder: Path
) -> None:
    """What is dead may be dropped until the mover has looked; a daemon that takes longer than that
    is not waited for again.
    """
    decide, snippet = handing_out(AHEAD)
    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(snippet).facts()
        became = [event.moved for event in daemon.finished().events if event.kind == MOVED]
    assert [call.split()[2] for call in facts["calls"] if call.startswith("discard")] == ["4100+4"]
    assert became == [(30, "cancelled", 0)]
    assert min(facts["took"][1:]) < facts["took"][0], "only the first waits"


def test_it_does_not_wait_while_the_gpu_is_about_to_run_out_of_launches(
    run: Run, runtime_folder: Path
) -> None:
    decide, snippet = handing_out(AHEAD - 3)  # with the two behind them, one less
    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(snippet).facts()
        became = [event.moved for event in daemon.finished().events if event.kind == MOVED]
    assert not any(call.startswith("discard") for call in facts["calls"])
    assert became == [(20, "cancelled", 0), (30, "cancelled", 0)]


@pytest.mark.parametrize("settings", [{"DEEPUM_SYNC": "1"}, {"DEEPUM_GATES": "0"}])
def test_there_are_none_in_lock_step_nor_where_they_are_not_wanted(
    run: Run, runtime_folder: Path, settings: dict[str, str]
) -> None:
    snippet = (
        "enter(); allocate(64)\nfor _ in range(5): execute(); time.sleep(0.05)\ntell(calls=calls())"
    )
    with FakeDaemon(runtime_folder, held()) as daemon:
        calls = run(snippet, **settings).facts()["calls"]
        daemon.finished()
    assert sum(call.startswith("prefetch") for call in calls) == 5
    assert not any(call.split()[0] in ("register", "gate", "open") for call in calls)


def test_a_driver_that_has_none_is_done_without(run: Run, runtime_folder: Path) -> None:
    snippet = (
        "enter(); allocate(64); call('register_error', 801)\nfor _ in range(5): execute(); "
        "time.sleep(0.05)\ntell(calls=calls())"
    )
    with FakeDaemon(runtime_folder, held()) as daemon:
        ran = run(snippet, DEEPUM_LOG="2")
        daemon.finished()
    assert "gates: the driver has none" in ran.err
    assert not any(call.split()[0] in ("gate", "open") for call in ran.facts()["calls"])


def test_a_stream_that_cannot_wait_ends_them(run: Run, runtime_folder: Path) -> None:
    snippet = (
        f"{BEGIN}\ncall('gate_error', 801); execute(); call('gate_error', 0); execute(); "
        f"time.sleep(0.1); tell(calls=calls())"
    )
    with FakeDaemon(runtime_folder, held()) as daemon:
        ran = run(snippet, DEEPUM_LOG="2")
        daemon.finished()
    assert ran.err.count("gates: the driver refused to let a stream wait") == 1
    assert not waits(ran.facts()["calls"])


@pytest.mark.parametrize(
    "end", ["call('value_wait', 0)", "call('context_ending', 0xc0)", "call('leave')"]
)
def test_all_are_opened_for_good(run: Run, runtime_folder: Path, end: str) -> None:
    """What the mover has queued may be written after that, and lower a word."""
    snippet = f"""{BEGIN}
call("writes_values", 0); execute(); held = call("all_open"); {end}; open = call("all_open")
call("write_word", 0, 7); time.sleep(0.2); execute(); time.sleep(0.05)
tell(held=held, open=open, again=call("all_open"), calls=calls())
"""
    with FakeDaemon(runtime_folder, held()) as daemon:
        ran = run(snippet)
        daemon.finished()
    facts = ran.facts()
    assert (facts["held"], facts["open"], facts["again"]) == (0, 1, 1)
    assert len(waits(facts["calls"])) == 1


@pytest.mark.parametrize(
    ("before", "behind_others"),
    [("pass", True), ("call('graph', 0)", False), ("call('graph', 0)", True)],
)
def test_a_graph_leaves_gates_but_no_launch_waits_for_other_streams_from_then_on(
    run: Run, runtime_folder: Path, before: str, behind_others: bool
) -> None:
    """From then on no stream waits for another through our moves: a graph would stand still until
    all that it needs is there.
    """
    snippet = f"""{BEGIN}
{before}
sequence = execute()
tell(sequence=sequence, calls=wait_calls(lambda all: any(c.startswith("open") and c.endswith(f" {{sequence}}") for c in all)))
"""
    with FakeDaemon(runtime_folder, held(behind_others=behind_others), delay=0.1) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    calls = facts["calls"]
    assert waits(calls) == [facts["sequence"]]
    writer = next(call.split()[1] for call in calls if call.startswith("open"))
    assert (f"wait {writer} {last_move(calls)[1]}" in calls) == (
        before == "pass" or not behind_others
    )


def test_none_waits_for_a_daemon_that_says_nothing_more(start: Start, runtime_folder: Path) -> None:
    """All are opened after half a second, and later ones are used once it has caught up."""
    decide = held()
    snippet = f"""{BEGIN}
print("{{}}", flush=True); time.sleep(0.2); calls(); execute(); before = call("all_open"); time.sleep(1.2); after = call("all_open")
print("{{}}", flush=True); time.sleep(0.2); sequence = execute()
tell(before=before, after=after, sequence=sequence, calls=wait_calls(lambda all: any(c.startswith("open") and ".1" in c for c in all)))
"""
    with FakeDaemon(runtime_folder, decide) as daemon:
        process = start(snippet, DEEPUM_LOG="2")
        assert process.stdout is not None
        process.stdout.readline()
        daemon.session().paused.set()
        process.stdout.readline()
        daemon.session().paused.clear()
        out, errors = process.communicate(timeout=60)
        daemon.finished()
    facts = Ran(0, out, errors).facts()
    assert (facts["before"], facts["after"]) == (0, 1)
    assert errors.count("gates: none has opened for a while; all were opened") == 1
    assert waits(facts["calls"], "w0.1") == [facts["sequence"]]


def test_a_decision_without_commands_that_comes_during_a_round_opens_its_gate(
    run: Run, runtime_folder: Path
) -> None:
    """The mover stands in a call for the launch before when it comes, so that nobody wakes it."""
    snippet = f"""{BEGIN}
time.sleep(0.1); calls(); call("prefetch_delay", 100)
execute(); execute(stream=1); execute(stream=1); time.sleep(0.4); tell(calls=calls())
"""
    launches: list[int] = []

    def decide(event: Event) -> list[Command]:
        if event.kind == EXECUTE:
            launches.append(event.sequence)
        return each(event) if event.kind == EXECUTE and len(launches) <= 2 else []

    each = held()
    with FakeDaemon(runtime_folder, decide, delay=0.02) as daemon:
        ran = run(snippet, DEEPUM_LOG="2")
        daemon.finished()
    calls = ran.facts()["calls"]
    assert waits(calls, "w1") == launches[-2:] and any(
        call.split()[2:] == ["w1", str(launches[-1])] for call in calls if "open" in call
    )
    assert "all were opened" not in ran.err


def test_behind_gates_the_lane_stands_still_for_advice_and_launches_go_on_waiting(
    run: Run, runtime_folder: Path
) -> None:
    """The second launch drops what it used. Later ones wait at their gates as before."""
    each = held()

    def decide(event: Event) -> list[Command]:
        commands = each(event)
        if commands and commands[0].id == 3:
            commands.append(
                Command(DROP, first=20, after=event.sequence, id=1000, cause=event.sequence)
            )
        return commands

    snippet = f"""{BEGIN}
execute(); dropped = wait_calls(lambda all: all.count("goes on") == 2)
last = execute()
tell(last=last, dropped=dropped, calls=wait_calls(lambda all: sum(c.startswith("open") for c in all) >= 2))
"""
    with FakeDaemon(runtime_folder, decide) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert waits(facts["calls"]) == [facts["last"]]
    dropped = facts["dropped"]
    lane = next(call.split()[1] for call in dropped if call.startswith("stands"))
    moved = dropped.index(f"prefetch {lane} 4136+2 host")
    assert next(call for call in dropped[:moved] if lane in call).startswith(f"wait {lane}"), (
        "it follows the launch"
    )
    assert dropped[:moved].count(f"stands {lane}") == dropped[moved:].count(f"stands {lane}") == 1
