"""Which discard the driver is asked for, and what is answered where it has none, or refuses them.
Exact driver calls, in lock-step.
"""

from __future__ import annotations

from pathlib import Path

from daemon_side import MOVED, PREFETCH, Command, Session
from discarding import Run, discard, lock_step


def answers(session: Session) -> list[str]:
    return [event.moved[1] for event in session.events if event.kind == MOVED]


def test_a_discard_alone_is_what_a_driver_with_both_forms_is_asked_for(
    run: Run, runtime_folder: Path
) -> None:
    """The other one leaves zeroed pages on the host, which the next prefetch copies."""
    calls, _ = lock_step(
        run, runtime_folder, {1: [discard()]}, "call('bare_discards'); execute(); execute()"
    )
    assert calls[1] == "discard m1 4096+8"


def test_below_a_budget_the_memory_stays_with_the_block_as_well(
    run: Run, runtime_folder: Path
) -> None:
    snippet = "call('bare_discards'); execute(); execute()"
    calls, _ = lock_step(run, runtime_folder, {1: [discard()]}, snippet, DEEPUM_GPU_MEMORY="8GiB")
    assert calls[1] == "discard m1 4096+8"


def test_where_launches_wait_for_nothing_the_memory_goes_to_the_host(
    run: Run, runtime_folder: Path
) -> None:
    free = {"DEEPUM_SYNC": "0", "DEEPUM_GATES": "0", "DEEPUM_MARKER_INTERVAL": "1"}
    snippet = "call('bare_discards'); execute(); execute(); time.sleep(0.5)"
    calls, _ = lock_step(run, runtime_folder, {1: [discard()]}, snippet, **free)
    assert "discard m1 4096+8 host" in calls


def test_a_driver_without_discards_says_so_and_so_does_one_whose_kernel_module_has_none(
    run: Run, runtime_folder: Path
) -> None:
    old = {1: [discard()]}
    calls, session = lock_step(
        run, runtime_folder, old, "call('no_discards'); execute(); execute()"
    )
    assert (calls, answers(session)) == (["launch s0"] * 2, ["refused"])


def test_after_one_that_is_not_supported_none_is_asked_for(run: Run, runtime_folder: Path) -> None:
    plan = {1: [discard()], 2: [discard(first=8)]}
    snippet = "call('bare_discards'); call('discard_error', 801); execute(); execute(); execute()"
    calls, session = lock_step(run, runtime_folder, plan, snippet)
    assert [call for call in calls if call.startswith("discard")] == ["discard m1 4096+8"]
    assert answers(session) == ["refused", "refused"]


def test_after_a_wait_for_a_value_they_are_refused(run: Run, runtime_folder: Path) -> None:
    _, session = lock_step(
        run, runtime_folder, {1: [discard()]}, "execute(); call('value_wait', 0); execute()"
    )
    assert answers(session) == ["refused"]


def test_discards_that_fail_again_and_again_end_the_discards_and_not_the_prefetches(
    run: Run, runtime_folder: Path
) -> None:
    plan = {i: [discard(first=i)] for i in range(1, 21)} | {22: [Command(PREFETCH, first=28)]}
    snippet = "call('bare_discards'); call('discard_error', 1)\nfor _ in range(23): execute()"
    calls, session = lock_step(run, runtime_folder, plan, snippet)
    assert len([call for call in calls if call.startswith("discard")]) == 16
    assert answers(session) == ["failed"] * 15 + ["refused"] * 5
    assert any(call.startswith("prefetch") for call in calls)
