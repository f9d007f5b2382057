"""A device comes into use: its event says how much of it there is, once the driver can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from daemon_side import ALLOCATE, DEVICE, EXECUTE, FakeDaemon
from runtime_tools import Ran

Run = Callable[..., Ran]
NOT_YET = 709  # CONTEXT_IS_DESTROYED: of a primary context that nothing has needed yet


@pytest.mark.parametrize("times", [1, 3])
def test_a_context_that_is_not_initialised_is_asked_again(
    run: Run, runtime_folder: Path, times: int
) -> None:
    snippet = f"""call("memory_errors", {NOT_YET}, {times})
tell(entered=[enter() for _ in range({times} + 2)])
"""
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(snippet, DEEPUM_GPU_RESERVE="0")
        events = daemon.finished().events
    assert ran.facts()["entered"] == [False] * times + [True, True]
    assert [event.kind for event in events] == [DEVICE]
    assert events[0].words == (16 << 30, 15 << 30)
    assert ran.err == ""


def test_another_thread_does_not_know_the_device_before_it_is_told(
    run: Run, runtime_folder: Path
) -> None:
    """The driver takes its time to answer the first thread, and then cannot tell yet."""
    snippet = f"""call("memory_errors", {NOT_YET}, 1); call("memory_waits", 1)
found = []
def other():
    call("set_thread_context")
    while not call("memory_asked"):
        time.sleep(0.001)
    found.append(enter())
    call("memory_waits", 0)
    while not asked:
        time.sleep(0.001)
    found.append(enter())
asked = []
thread = threading.Thread(target=other)
thread.start()
asked.append(enter())
thread.join()
tell(first=asked, other=found, again=enter())
"""
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(snippet)
        kinds = [event.kind for event in daemon.finished().events]
    assert ran.facts() == {"first": [False], "other": [False, True], "again": True}
    assert kinds.count(DEVICE) == 1


def test_what_is_allocated_before_it_can_tell_is_known_behind_the_device(
    run: Run, runtime_folder: Path
) -> None:
    snippet = f"""call("memory_errors", {NOT_YET}, 1)
enter(); allocate(4); enter(); execute()
"""
    with FakeDaemon(runtime_folder) as daemon:
        run(snippet)
        kinds = [event.kind for event in daemon.finished().events]
    assert kinds[kinds.index(DEVICE) :] == [DEVICE, ALLOCATE, EXECUTE]


def test_another_device_is_not_asked_for_again(run: Run, runtime_folder: Path) -> None:
    snippet = f"""enter(0); call("memory_errors", {NOT_YET}, 1)
tell(entered=[enter(1), enter(0), enter(1)])
"""
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(snippet)
        devices = [event.device for event in daemon.finished().events if event.kind == DEVICE]
    assert ran.facts()["entered"] == [False, True, True]
    assert devices == [0, 1]


def test_a_driver_that_refuses_to_tell_is_taken_to_have_all_of_it_free(
    run: Run, runtime_folder: Path
) -> None:
    with FakeDaemon(runtime_folder) as daemon:
        ran = run(
            "call('memory_errors', 999, 1000); tell(entered=[enter(), enter()])",
            DEEPUM_GPU_RESERVE="0",
        )
        events = daemon.finished().events
    assert ran.facts()["entered"] == [True, True]
    assert [(event.kind, *event.words) for event in events] == [(DEVICE, 16 << 30, 16 << 30)]
    assert ran.err == (
        "deepum: warning: GPU 0: cuMemGetInfo answers with error 999; all of its memory is taken "
        "to be free\n"
    )
