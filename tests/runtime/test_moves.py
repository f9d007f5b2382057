"""What the mover asks of the driver, and in what order. In lock-step, so that every run is the
same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import (
    ADVISE,
    ALLOCATE,
    DISCARD,
    EVICT,
    EXECUTE,
    HOLD,
    MOVED,
    PREFETCH,
    Command,
    Event,
    FakeDaemon,
    Session,
    socket_of,
)
from runtime_tools import Ran

Run = Callable[..., Ran]


class Script:
    """Commands by the ordinal of the launch that causes them; "this" stands for that launch's
    sequence.
    """

    def __init__(self, plan: dict[int, list[Command]]) -> None:
        self.plan = plan
        self.launches: list[int] = []  # sequences

    def __call__(self, event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        self.launches.append(event.sequence)
        commands = self.plan.get(len(self.launches) - 1, [])
        for command in commands:
            command.cause = event.sequence
            if command.after < 0:  # -1: this launch, -2: the one before
                command.after = self.launches[command.after]
        return commands


def lock_step(
    run: Run, folder: Path, plan: dict[int, list[Command]], snippet: str, **settings: str
) -> tuple[list[str], Session]:
    with FakeDaemon(folder, Script(plan)) as daemon:
        ran = run(
            f"enter(); allocate(64)\n{snippet}\ntell(calls=calls())", DEEPUM_SYNC="1", **settings
        )
        calls = ran.calls()
        return calls, daemon.finished()


def moved(session: Session) -> list[tuple[int, str, int]]:
    return [event.moved for event in session.events if event.kind == MOVED]


def test_a_move_without_conditions_goes_before_the_launch_that_caused_it(
    run: Run, runtime_folder: Path
) -> None:
    calls, session = lock_step(
        run, runtime_folder, {0: [Command(PREFETCH, first=3, count=2)]}, "execute(); execute()"
    )
    assert calls == ["prefetch m1 4102+4 device 0", "launch s0", "launch s0"]
    assert moved(session) == []


def test_an_eviction_waits_for_the_marker_behind_the_last_use_and_a_prefetch_for_the_eviction(
    run: Run, runtime_folder: Path
) -> None:
    plan = {0: [Command(EVICT, first=0, after=-1), Command(PREFETCH, first=8, after_move=1)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "for _ in range(3): execute()", DEEPUM_MARKER_INTERVAL="4"
    )
    assert calls == [
        "launch s0",
        "record e1 s0",  # by the mover, while the second launch waits for it
        "wait m1 e1",
        "prefetch m1 4096+2 host",
        "record e2 m1",
        "wait m2 e2",
        "prefetch m2 4112+2 device 0",
        *["launch s0"] * 2,
    ]


def test_without_prefetching_evictions_go_on(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [
            Command(EVICT, first=0),
            Command(PREFETCH, first=8, after_move=1),
            Command(EVICT, first=4, after_move=2),
        ]
    }
    calls, session = lock_step(
        run, runtime_folder, plan, "execute(); execute()", DEEPUM_PREFETCH="0"
    )
    assert [call for call in calls if "prefetch" in call] == [
        "prefetch m1 4096+2 host",
        "prefetch m1 4104+2 host",
    ]
    assert calls.count("launch s0") == 2
    assert moved(session) == []


def test_without_prefetching_a_launch_is_held_until_there_is_room(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        1: [
            Command(EVICT, first=0),
            Command(PREFETCH, first=8, after_move=1),
            Command(HOLD, streams=1, after_move=2),
        ]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()", DEEPUM_PREFETCH="0")
    assert calls == [
        *["launch s0", "prefetch m1 4096+2 host", "record e1 m1"],
        *["wait m2 e1", "record e2 m2", "wait s0 e2", "launch s0"],
    ]


def test_what_waits_holds_up_its_own_direction_only(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [Command(EVICT, first=0, after=-1), Command(EVICT, first=4), Command(PREFETCH, first=8)]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == ["prefetch m1 4112+2 device 0", "launch s0"]


def test_a_stream_without_launches_up_to_the_sequence_is_covered_by_its_last_marker(
    run: Run, runtime_folder: Path
) -> None:
    plan = {4: [Command(EVICT, after=-2, streams=0b11)]}
    calls, _ = lock_step(
        run,
        runtime_folder,
        plan,
        "execute(0); execute(0); execute(1); execute(1); execute(0); execute(0)",
        DEEPUM_MARKER_INTERVAL="2",
    )
    # Stream 0's first marker is older than the sequence, but nothing was launched there in between.
    assert calls == [
        *["launch s0", "launch s0", "record e1 s0"],
        *["launch s1", "launch s1", "record e2 s1"],
        *["wait m1 e1", "wait m1 e2", "prefetch m1 4096+2 host"],
        *["launch s0", "launch s0", "record e3 s0"],
    ]


def test_what_was_waited_for_is_not_waited_for_again(run: Run, runtime_folder: Path) -> None:
    plan = {1: [Command(EVICT, first=0, after=-2)], 2: [Command(EVICT, first=6, after=-3)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "for _ in range(3): execute()", DEEPUM_MARKER_INTERVAL="1"
    )
    assert [call for call in calls if call.startswith("wait")] == ["wait m1 e1"]
    assert [call for call in calls if call.startswith("prefetch")] == [
        "prefetch m1 4096+2 host",
        "prefetch m1 4108+2 host",
    ]


def test_before_the_program_blocks_every_stream_has_its_marker_and_moves_go_on(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [Command(EVICT, after=-1, streams=0b11)]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(0); execute(1); synchronise()")
    assert calls == [
        "launch s0",
        "record e1 s0",  # the second launch is only about to be
        "launch s1",
        "record e2 s1",
        *["wait m1 e1", "wait m1 e2", "prefetch m1 4096+2 host"],
        "synchronise",
    ]


def test_adjacent_moves_become_one_and_others_a_batch_where_there_are_batches(
    run: Run, runtime_folder: Path
) -> None:
    moves = [
        Command(PREFETCH, first=0),
        Command(PREFETCH, first=1, count=2),
        Command(PREFETCH, first=9),
    ]
    calls, _ = lock_step(run, runtime_folder, {0: moves}, "execute()")
    assert calls == ["prefetch m1 4096+6 device 0", "prefetch m1 4114+2 device 0", "launch s0"]


def test_neighbours_of_different_allocations_stay_apart(run: Run, runtime_folder: Path) -> None:
    moves = [Command(PREFETCH, slot=1), Command(PREFETCH, slot=2)]
    calls, _ = lock_step(
        run, runtime_folder, {0: moves}, "allocate(2, at=512); allocate(2, at=514); execute()"
    )
    assert calls == ["prefetch m1 4608+2 device 0", "prefetch m1 4610+2 device 0", "launch s0"]


def test_batches(run: Run, runtime_folder: Path) -> None:
    moves = [
        Command(PREFETCH, first=0),
        Command(PREFETCH, first=1, count=2),
        Command(PREFETCH, first=9),
    ]
    calls, _ = lock_step(run, runtime_folder, {0: moves}, "call('batches'); execute()")
    assert calls == ["batch m1 4096+6 4114+2 device 0", "launch s0"]


def test_the_first_form_of_the_call_serves_old_drivers(run: Run, runtime_folder: Path) -> None:
    calls, _ = lock_step(
        run,
        runtime_folder,
        {0: [Command(EVICT), Command(PREFETCH, first=5)]},
        "call('only_first_form'); execute()",
    )
    assert calls == ["prefetch1 m1 4096+2 -1", "prefetch1 m2 4106+2 0", "launch s0"]


def test_a_move_that_others_wait_for_ends_a_merge(run: Run, runtime_folder: Path) -> None:
    moves = [
        Command(EVICT, first=0),
        Command(EVICT, first=1),
        Command(PREFETCH, first=8, after_move=1),
    ]
    calls, _ = lock_step(run, runtime_folder, {0: moves}, "execute()")
    assert calls == [
        "prefetch m1 4096+2 host",
        "record e1 m1",
        "prefetch m1 4098+2 host",
        "wait m2 e1",
        "prefetch m2 4112+2 device 0",
        "launch s0",
    ]


def test_a_later_command_can_wait_for_a_move_long_issued(run: Run, runtime_folder: Path) -> None:
    plan = {0: [Command(EVICT, first=0)], 1: [Command(PREFETCH, first=8, after_move=1)]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls == [
        *["prefetch m1 4096+2 host", "launch s0"],
        *["record e1 m1", "wait m2 e1", "prefetch m2 4112+2 device 0", "launch s0"],
    ]


def test_commands_for_memory_that_is_gone_are_skipped_and_nobody_waits_for_them(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [
            Command(EVICT, generation=9),
            Command(EVICT, slot=5),
            Command(EVICT, first=4000),
            Command(PREFETCH, first=8, after_move=3),
        ]
    }
    calls, session = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == ["prefetch m1 4112+2 device 0", "launch s0"]
    assert moved(session) == [(1, "stale", 0), (2, "stale", 0), (3, "stale", 0)]


def test_a_slot_given_out_again_is_another_allocation(run: Run, runtime_folder: Path) -> None:
    plan = {0: [Command(PREFETCH)], 1: [Command(PREFETCH), Command(PREFETCH, generation=2)]}
    calls, session = lock_step(
        run, runtime_folder, plan, "execute(); free(); allocate(2, at=512); execute()"
    )
    assert calls == [
        "prefetch m1 4096+2 device 0",
        "launch s0",
        "prefetch m1 4608+2 device 0",
        "launch s0",
    ]
    assert moved(session) == [(2, "stale", 0)]


def test_discards_that_the_driver_has_not_are_refused_and_nonsense_is_cancelled(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [
            Command(DISCARD),
            Command(77),
            Command(PREFETCH, device=99),
            Command(PREFETCH, first=2, after_move=1),
        ]
    }
    calls, session = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == ["prefetch m1 4100+2 device 0", "launch s0"]
    assert sorted(moved(session)) == [(1, "refused", 0), (2, "cancelled", 0), (3, "cancelled", 0)]


def test_advice_is_carried_out_in_its_turn(run: Run, runtime_folder: Path) -> None:
    plan = {
        0: [
            Command(PREFETCH),
            Command(ADVISE, advice=3, location=-1),
            Command(ADVISE, advice=5, location=0),
        ]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute()")
    assert calls == [
        "prefetch m1 4096+2 device 0",
        "advise 4096+2 3 host",
        "advise 4096+2 5 device 0",
        "launch s0",
    ]


def test_failures_are_reported_and_many_in_a_row_turn_the_mover_off(
    run: Run, runtime_folder: Path
) -> None:
    plan = {i: [Command(PREFETCH, first=2 * i)] for i in range(20)}
    with FakeDaemon(runtime_folder, Script(plan)) as daemon:
        ran = run(
            (
                "enter(); allocate(64); call('prefetch_error', 801)\nfor _ in range(20): "
                "execute()\ntell(calls=calls())"
            ),
            DEEPUM_SYNC="1",
        )
        assert len([call for call in ran.calls() if call.startswith("prefetch")]) == 16
        became = moved(daemon.finished())
    assert became == [(i, "failed", 801) for i in range(1, 17)] + [
        (i, "cancelled", 0) for i in range(17, 21)
    ]
    assert ran.err == (
        "deepum: warning: mover: 16 moves in a row failed (CUDA error 801); going on without "
        "prefetching\n"
    )


def test_a_refused_launch_is_waited_for_no_longer_than_until_the_next_one(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [Command(EVICT, after=-1)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(refused=True); execute(); synchronise()"
    )
    assert calls.index("prefetch m1 4096+2 host") < calls.index("synchronise")


def test_a_stream_that_no_event_can_be_recorded_on_is_not_waited_for_forever(
    run: Run, runtime_folder: Path
) -> None:
    plan = {0: [Command(EVICT, after=-1)]}
    calls, _ = lock_step(
        run,
        runtime_folder,
        plan,
        "call('event_error', 400)\nfor _ in range(8): execute()",
        DEEPUM_MARKER_INTERVAL="1",
    )
    assert "prefetch m1 4096+2 host" in calls and not any(call.startswith("wait") for call in calls)


def test_a_destroyed_stream_leaves_its_last_marker_behind(run: Run, runtime_folder: Path) -> None:
    plan = {1: [Command(EVICT, after=-2, streams=0b10)]}
    calls, _ = lock_step(run, runtime_folder, plan, "execute(1); call('destroy', 1); execute(0)")
    assert calls == [
        "launch s1",
        "record e1 s1",
        "wait m1 e1",
        "prefetch m1 4096+2 host",
        "launch s0",
    ]


def test_all_streams_that_had_an_id_are_waited_for(run: Run, runtime_folder: Path) -> None:
    """The work of one that was destroyed goes on, beside that of the next."""
    plan = {
        3: [Command(EVICT, after=-2, streams=0b10)],
        4: [Command(EVICT, after=-1, streams=0b10, first=4)],
    }
    snippet = (
        "execute(1); call('destroy', 1); execute(0); execute(1, handle=101); execute(0); "
        "execute(1, handle=101); execute(0)"
    )
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    first = calls.index("prefetch m1 4096+2 host")
    assert [call for call in calls[:first] if call.startswith("wait")] == [
        "wait m1 e1",
        "wait m1 e2",
    ]
    assert calls.index("record e1 s1") < calls.index("record e2 s101") < first
    assert [call for call in calls[first:] if call.startswith("wait")] == ["wait m1 e3"], (
        "the first is done with"
    )


def test_an_idle_stream_gets_its_marker_when_a_move_waits_for_it(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [Command(EVICT, after=-2, streams=0b10)]}
    calls, _ = lock_step(
        run,
        runtime_folder,
        plan,
        "execute(1)\nfor _ in range(6): execute(0)",
        DEEPUM_MARKER_INTERVAL="4",
    )
    assert calls == [
        *["launch s1", "record e1 s1", "wait m1 e1", "prefetch m1 4096+2 host"],
        *["launch s0"] * 4,
        "record e2 s0",
        *["launch s0"] * 2,
    ]


def test_no_marker_is_recorded_on_another_stream_that_may_be_capturing(
    run: Run, runtime_folder: Path
) -> None:
    plan = {1: [Command(EVICT, after=-2, streams=0b10)]}
    calls, _ = lock_step(
        run,
        runtime_folder,
        plan,
        "execute(1); call('capturing', 1)\nfor _ in range(6): execute(0)",
        DEEPUM_MARKER_INTERVAL="2",
    )
    assert not any(call.endswith(" s1") and call.startswith("record") for call in calls)


def test_streams_that_share_an_id_are_all_waited_for(run: Run, runtime_folder: Path) -> None:
    plan = {2: [Command(EVICT, after=-1, streams=1 << 63)]}
    snippet = (
        "execute(63, handle=100); execute(63, handle=101); execute(63, handle=100); synchronise()"
    )
    calls, _ = lock_step(run, runtime_folder, plan, snippet)
    assert calls == [
        *["launch s100", "launch s101", "record e1 s100", "record e2 s101", "launch s100"],
        "record e3 s100",
        *["wait m1 e3", "wait m1 e2", "prefetch m1 4096+2 host"],
        "synchronise",
    ]


def test_markers_are_used_again_and_old_launches_covered_by_later_ones(
    run: Run, runtime_folder: Path
) -> None:
    plan = {2299: [Command(EVICT, after=-2300)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "for _ in range(2300): execute()", DEEPUM_MARKER_INTERVAL="1"
    )
    recorded = [call.split()[1] for call in calls if call.startswith("record")]
    assert len(set(recorded)) == 2048
    assert [call for call in calls if call.startswith("wait")] == [
        f"wait m1 {recorded[2299 - 2048]}"
    ]


@pytest.mark.parametrize(
    ("blocks", "launches"),
    [(0, 16), (7, 16), (8, 16), (9, 15), (60, 3), (64, 2), (128, 1), (5000, 1)],
)
def test_a_marker_comes_after_so_many_launches_or_so_much_memory(
    run: Run, runtime_folder: Path, blocks: int, launches: int
) -> None:
    """Each 16 launches; behind 256 MiB: what touches so much takes long."""
    calls, _ = lock_step(
        run,
        runtime_folder,
        {},
        f"for _ in range({2 * launches}): execute(blocks={blocks})",
        DEEPUM_MARKER_INTERVAL="16",
    )
    assert calls == [
        *["launch s0"] * launches,
        "record e1 s0",
        *["launch s0"] * launches,
        "record e2 s0",
    ]


def test_after_its_context_was_destroyed_a_device_is_entered_anew(
    run: Run, runtime_folder: Path
) -> None:
    plan = {0: [Command(PREFETCH)], 1: [Command(PREFETCH, generation=2)]}
    snippet = (
        "execute(); free(); call('context_destroyed'); set_context(0xd0); enter(); allocate(2); "
        "execute()"
    )
    calls, session = lock_step(run, runtime_folder, plan, snippet)
    assert calls == [
        "prefetch m1 4096+2 device 0",
        "launch s0",
        "prefetch m2 4096+2 device 0",
        "launch s0",
    ]
    assert [event.kind for event in session.events].count(1) == 2


def test_what_waits_for_another_devices_launches_does_not_wait_for_its_next_one(
    run: Run, runtime_folder: Path
) -> None:
    """Its marker is recorded in that device's own context."""
    plan = {1: [Command(EVICT, after=-2, streams=0b11, device=1)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(0); set_context(0xd0); enter(1); execute(1)"
    )
    assert calls == [
        "launch s0",
        "push c0",
        "record e1 s0",
        "pop",
        "wait m1 e1",
        "prefetch m1 4096+2 host",
        "launch s1",
    ]


def test_before_the_program_waits_other_devices_streams_get_their_markers_too(
    run: Run, runtime_folder: Path
) -> None:
    snippet = "execute(0); set_context(0xd0); enter(1); execute(1); synchronise(1); synchronise()"
    calls, _ = lock_step(run, runtime_folder, {}, snippet)
    assert calls == [
        "launch s0",
        "launch s1",
        "record e1 s1",
        "synchronise",
        "push c0",
        "record e2 s0",
        "pop",
        "synchronise",
    ]


def test_moves_for_a_context_that_ended_are_no_failures(run: Run, runtime_folder: Path) -> None:
    plan = {i: [Command(PREFETCH, first=i)] for i in range(30)}
    snippet = """
execute(); call('context_destroyed')
for _ in range(28): execute()
set_context(0xd0); enter(); execute()
"""
    calls, session = lock_step(run, runtime_folder, plan, snippet)
    assert calls[:2] == ["prefetch m1 4096+2 device 0", "launch s0"]
    assert calls[-2:] == ["prefetch m2 4154+2 device 0", "launch s0"]
    assert moved(session) == [(i, "cancelled", 0) for i in range(2, 30)]


def test_between_launches_nothing_moves(run: Run, runtime_folder: Path) -> None:
    """Not even what was decided then: when it would happen depended on who is faster."""

    def decide(event: Event) -> list[Command]:
        return (
            [Command(PREFETCH, slot=1)]
            if event.kind == ALLOCATE and event.words[0] & 0xFFFFFFFF == 1
            else []
        )

    snippet = """
enter(); allocate(64)
for _ in range(20): execute()
calls(); allocate(2, at=512); time.sleep(0.3); between = calls(); execute(); tell(between=between, calls=calls())
"""
    with FakeDaemon(runtime_folder, decide, delay=0.002) as daemon:
        facts = run(snippet, DEEPUM_SYNC="1").facts()
        daemon.finished()
    assert facts["between"] == []
    assert facts["calls"] == ["prefetch m1 4608+2 device 0", "launch s0"]


def test_two_runs_give_the_same_events_and_calls(run: Run, runtime_folder: Path) -> None:
    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        seed = event.sequence * 2654435761 % 2**32
        made = [
            Command(EVICT, first=seed % 30, after=event.sequence),
            Command(PREFETCH, first=seed // 7 % 30, generation=seed % 5 and 1),
        ]
        return made[: seed % 3]

    seen = []
    for _ in range(2):
        with FakeDaemon(runtime_folder, decide) as daemon:
            snippet = (
                "enter(); allocate(64)\nfor i in range(300): execute(i % 3, "
                "hash=i)\nsynchronise(); tell(calls=calls())"
            )
            ran = run(snippet, DEEPUM_SYNC="1")
            session = daemon.finished()
            seen.append((ran.calls(), [(e.kind, e.sequence, e.body) for e in session.events]))
        socket_of(runtime_folder).unlink()
    assert seen[0] == seen[1]
    assert len(seen[0][0]) > 400


def test_a_held_launch_starts_behind_its_prefetch_and_not_behind_later_ones(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        0: [Command(PREFETCH, first=0), Command(HOLD, streams=1, after_move=1)],
        1: [
            Command(PREFETCH, first=4),
            Command(HOLD, streams=1, after_move=3),
            Command(PREFETCH, first=8),
        ],
        2: [Command(HOLD, streams=1, after_move=5)],
    }
    calls, session = lock_step(run, runtime_folder, plan, "for _ in range(3): execute()")
    assert calls == [
        # Its stream is known from the first launch on.
        *["prefetch m1 4096+2 device 0", "record e1 m1", "launch s0"],
        *[
            "prefetch m1 4104+2 device 0",
            "record e2 m1",
            "prefetch m1 4112+2 device 0",
            "record e3 m1",
            "wait s0 e2",
            "launch s0",
        ],
        *["wait s0 e3", "launch s0"],
    ]
    assert moved(session) == []


@pytest.mark.parametrize("others", [False, True])
def test_once_a_stream_waited_for_a_value_no_launch_is_held_behind_other_streams(
    run: Run, runtime_folder: Path, others: bool
) -> None:
    """It may wait for what comes behind that launch."""
    plan = {
        index: [
            Command(PREFETCH, first=4 * index),
            Command(HOLD, streams=1, after_move=1 + 2 * index, advice=int(others)),
        ]
        for index in range(3)
    }
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(); execute(); call('value_wait', 0); execute()"
    )
    held = ["wait s0 e2", "launch s0"]
    at = calls.index("wait s0 e2")
    assert calls[at : at + 2] == held
    assert ("wait s0 e3" in calls) != others


def test_no_launch_is_held_by_a_move_that_the_driver_does_not_have(
    run: Run, runtime_folder: Path
) -> None:
    plan = {
        1: [
            Command(EVICT, first=0, after=-1),
            Command(PREFETCH, first=4, after_move=1),
            Command(HOLD, streams=1, after_move=2),
        ]
    }
    calls, _ = lock_step(run, runtime_folder, plan, "execute(); execute()")
    assert calls == ["launch s0", "record e1 s0", "launch s0"]


def test_a_stream_that_captures_is_not_held(run: Run, runtime_folder: Path) -> None:
    plan = {2: [Command(PREFETCH), Command(HOLD, streams=0b10, after_move=1)]}
    calls, _ = lock_step(
        run, runtime_folder, plan, "execute(1); call('capturing', 1); execute(0); execute(0)"
    )
    assert not any(call.startswith("wait s") for call in calls)


class BetweenLaunches(Script):
    """As Script, but what waits for a launch waits for what comes right behind it, which is no
    launch.
    """

    def __call__(self, event: Event) -> list[Command]:
        commands = super().__call__(event)
        for command in commands:
            command.after += 1
        return commands


@pytest.mark.parametrize("plan, after, marker", [(BetweenLaunches, -3, "e1"), (Script, -2, "e2")])
def test_what_follows_no_later_launch_waits_for_no_later_marker(
    run: Run, runtime_folder: Path, plan: type[Script], after: int, marker: str
) -> None:
    """Memory dies between two launches: what is behind the second one may take long and does not
    concern it.
    """
    script = plan({2: [Command(EVICT, first=0, after=after)]})
    with FakeDaemon(runtime_folder, script) as daemon:
        snippet = (
            "enter(); allocate(64); execute(); block(2); execute(); execute(); tell(calls=calls())"
        )
        calls = run(snippet, DEEPUM_SYNC="1", DEEPUM_MARKER_INTERVAL="1").calls()
        daemon.finished()
    assert calls[:4] == ["launch s0", "record e1 s0", "launch s0", "record e2 s0"]
    assert calls[4:6] == [f"wait m1 {marker}", "prefetch m1 4096+2 host"]


def test_a_launch_that_no_marker_covers_yet_is_covered_by_the_next(
    run: Run, runtime_folder: Path
) -> None:
    script = BetweenLaunches({3: [Command(EVICT, first=0, after=-3)]})
    with FakeDaemon(runtime_folder, script) as daemon:
        snippet = "enter(); allocate(64); " + "execute(); " * 4 + "tell(calls=calls())"
        calls = run(snippet, DEEPUM_SYNC="1", DEEPUM_MARKER_INTERVAL="3").calls()
        daemon.finished()
    assert calls[:4] == [*["launch s0"] * 3, "record e1 s0"]
    assert calls[4:6] == ["wait m1 e1", "prefetch m1 4096+2 host"]


def test_no_marker_covers_what_another_thread_is_about_to_launch_on_a_stream_that_shares_its_id(
    run: Run, runtime_folder: Path
) -> None:
    snippet = """
from threading import Thread
enter(); allocate(64); execute(63, handle=70)
other = Thread(target=lambda: emit_execute(63, 9)); other.start(); other.join()
execute(63, handle=70); tell(calls=calls())
"""
    with FakeDaemon(runtime_folder) as daemon:
        calls = run(snippet, DEEPUM_MARKER_INTERVAL="1").calls()
        daemon.finished()
    assert [call.split()[0] for call in calls] == ["launch", "record", "launch"]
