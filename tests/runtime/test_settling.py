"""What a real driver does with locks held, the mover must not have to wait for: calls of the
program's that come behind gates, and calls of the mover's that do not come back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import PREFETCH, SYNCHRONISE, Command, Event, FakeDaemon
from gating import BEGIN, first, held, waits
from runtime_tools import Ran

Run = Callable[..., Ran]

# From here on what the mover writes does not come, as behind a GPU that has much to do.
SHUT = f"{BEGIN}call('writes_values', 0)\n"
STUCK = "gates: none has opened for a while; all were opened"


def test_a_call_that_waits_with_locks_held_comes_when_no_launch_waits_at_its_gate(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""{SHUT}
meanwhile = Meanwhile(opens=execute())
call("locked_wait"); tell(opened=meanwhile.opened); meanwhile.leave()
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        ran = run(snippet)
        daemon.finished()
    assert ran.facts()["opened"]


def test_it_comes_all_the_same_when_the_gate_stays_shut(run: Run, runtime_folder: Path) -> None:
    snippet = f"""{SHUT}
execute(); meanwhile = Meanwhile()
call("locked_wait"); open = call("all_open"); meanwhile.leave(); tell(open=open)
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        ran = run(snippet, DEEPUM_LOG="2")
        daemon.finished()
    assert ran.facts()["open"] == 0
    assert STUCK not in ran.err, "others have opened all the while"


def test_it_does_not_wait_long_for_gates_of_which_none_opens(
    run: Run, runtime_folder: Path
) -> None:
    """What they wait for may be the program's to do: it goes on before all are opened for that."""
    snippet = f"""{SHUT}
execute(); call("locked_wait"); tell(open=call("all_open"))
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        ran = run(snippet)
        daemon.finished()
    assert ran.facts()["open"] == 0


def test_before_a_functions_first_launch_no_launch_waits_and_it_has_no_gate_itself(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""{SHUT}
waiting = execute(); meanwhile = Meanwhile(opens=waiting)
call("locked_wait"); call("next_launch_ungated"); opened = meanwhile.opened; meanwhile.leave()
execute(); last = execute()
tell(opened=opened, waited=[waiting, last], calls=calls())
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert facts["opened"]
    assert waits(facts["calls"]) == facts["waited"]


@pytest.mark.parametrize(("words", "waited"), [(2500, False), (3100, True)])
def test_a_launch_far_beyond_the_open_gate_is_not_queued_before_it_opens(
    run: Run, runtime_folder: Path, words: int, waited: bool
) -> None:
    """The driver's queue is never full: who waits for room in it waits with locks held. Words: of
    events between the two launches.
    """
    snippet = f"""{SHUT}
waiting = execute(); calls()
while emit_execute(1, 7, 200) - waiting < {words}: pass
meanwhile = Meanwhile(opens=waiting)
last = execute(); opened = meanwhile.opened; meanwhile.leave()
tell(opened=opened, last=last, calls=calls())
"""
    with FakeDaemon(runtime_folder, first(held())) as daemon:
        facts = run(snippet).facts()
        daemon.finished()
    assert facts["opened"] == waited
    assert waits(facts["calls"]) == [facts["last"]]


ROUNDS = 5  # if each counted as a gate that does not open for long, there would be none after four


def test_a_call_of_the_movers_that_does_not_come_back_opens_all_gates_and_each_time_anew(
    run: Run, runtime_folder: Path
) -> None:
    """The mover has processed what waits, and stands in a call for what came behind it."""

    def decide(event: Event) -> list[Command]:
        if event.kind == SYNCHRONISE:
            return [Command(PREFETCH, id=100 + event.sequence, cause=event.sequence)]
        return begin(event)

    snippet = f"""{SHUT}
time.sleep(0.1); calls(); call("prefetch_delay", 300)
for _ in range({ROUNDS}):
    at = execute()
    wait_calls(lambda all: any(c.startswith("open") and c.endswith(f" {{at}}") for c in all))
    synchronise()
    wait_calls(lambda all: any(c.startswith("prefetch") for c in all))
last = execute(); tell(last=last, calls=calls())
"""
    begin = first(held())
    with FakeDaemon(runtime_folder, decide) as daemon:
        ran = run(snippet, DEEPUM_LOG="2")
        daemon.finished()
    assert ran.err.count(STUCK) == ROUNDS
    assert "again and again" not in ran.err
    assert waits(ran.facts()["calls"], f"w0.{ROUNDS}") == [ran.facts()["last"]]
