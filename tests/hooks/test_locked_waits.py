"""Calls in which a real driver may wait for a stream with locks held that the mover needs: while
launches wait at gates they come when none does, and all other calls come at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from running import Ran

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "runtime"))

from daemon_side import EXECUTE, HOLD, LIBRARIES, Command, Event, FakeDaemon  # noqa: E402

# Gates are in use, and the mover's writes do not come. `waits_for_gates` tells of a call whether it
# came back before the gate of a launch before it opened; from before the call on another gate opens
# again and again, so that none are taken for stuck.
PROLOGUE = """
import threading, time
for name in ("fake_words", "fake_waited_at", "fake_pinned"): getattr(cuda, name).restype = c.c_uint64
start(); a, own = alloc(8 * MiB), managed(4 * MiB)
kernel = function("k:8")
while not cuda.fake_waits(): launch(kernel, a); time.sleep(0.002)
def word(of_others=0):
    place = cuda.fake_waited_at() - cuda.fake_words()  # 4096 bytes each time that all are opened
    return c.c_uint64.from_address(
        cuda.fake_words() + place // 4096 * 4096 + (place + of_others) % 4096)
word().value = 1 << 40

def waits_for_gates(call):
    word().value = 0
    launch(kernel, a)
    opened, begun = [], threading.Event()
    def others():
        until = time.monotonic() + 0.1
        while time.monotonic() < until: word(64).value += 1; begun.set(); time.sleep(0.002)
        opened.append(True); word().value = 1 << 40
    thread = threading.Thread(target=others); thread.start(); begun.wait()
    call(); found = bool(opened); thread.join()
    return found
"""
N, LEGACY = "c.c_size_t(MiB)", "None"
CALLS = {
    "memset of managed memory": (True, f"cuda.cuMemsetD32_v2(c.c_uint64(a), 1, {N})"),
    "memset of device memory": (False, f"cuda.cuMemsetD32_v2(c.c_uint64(plain), 1, {N})"),
    "memset in order": (False, f"cuda.cuMemsetD8Async(c.c_uint64(a), 1, {N}, {LEGACY})"),
    "copy from pageable memory": (
        False,
        f"cuda.cuMemcpyHtoDAsync_v2(c.c_uint64(a), c.c_uint64(pageable), {N}, {LEGACY})",
    ),
    "copy to pageable memory": (
        True,
        f"cuda.cuMemcpyDtoHAsync_v2(c.c_uint64(pageable), c.c_uint64(a), {N}, {LEGACY})",
    ),
    "copy of device memory to pageable": (
        True,
        f"cuda.cuMemcpyDtoHAsync_v2(c.c_uint64(pageable), c.c_uint64(plain), {N}, {LEGACY})",
    ),
    "copy from pinned memory": (
        False,
        f"cuda.cuMemcpyHtoDAsync_v2(c.c_uint64(a), c.c_uint64(pinned), {N}, {LEGACY})",
    ),
    "copy to pinned memory": (
        False,
        f"cuda.cuMemcpyDtoHAsync_v2(c.c_uint64(pinned), c.c_uint64(a), {N}, {LEGACY})",
    ),
    "copy that waits": (True, f"cuda.cuMemcpyHtoD_v2(c.c_uint64(a), c.c_uint64(pinned), {N})"),
    "free of memory that was made managed": (True, "free(b)"),
    "free of the program's own managed memory": (True, "free(own)"),
    "free in the stream's order": (False, "cuda.cuMemFreeAsync(c.c_uint64(d), None)"),
    "the next wait, which carries it out": (True, "cuda.cuCtxSynchronize()"),
    "wait for the GPU": (False, "cuda.cuCtxSynchronize()"),
    "allocation of device memory": (False, "alloc(65536)"),
    "allocation that is made managed": (True, "alloc(4 * MiB)"),
    "a function's first launch": (True, "launch(function('new:8'), a)"),
    "a function's second launch": (False, "launch(kernel, a)"),
}


@pytest.fixture
def facts_of(
    environment: dict[str, str], runtime_dir: Path, shim: Path
) -> Callable[[str], dict[str, object]]:
    """Runs a snippet whose first launches are held, which begins gates, and none later."""
    LIBRARIES[runtime_dir] = shim

    def decide(event: Event) -> list[Command]:
        if event.kind != EXECUTE:
            return []
        return [Command(HOLD, id=event.sequence, cause=event.sequence, count=0)]

    def facts_of(snippet: str) -> dict[str, object]:
        command = [sys.executable, "-c", "from client import *\n" + PROLOGUE + snippet]
        with FakeDaemon(runtime_dir, decide) as daemon:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, done.stderr
            daemon.finished()
        return Ran(done.returncode, done.stdout, done.stderr).facts()

    return facts_of


def test_which_calls_come_when_no_launch_waits_at_its_gate(
    facts_of: Callable[[str], dict[str, object]],
) -> None:
    calls = "".join(f"    {name!r}: lambda: {call},\n" for name, (_, call) in CALLS.items())
    found = facts_of(
        f"""
b, d, plain, pinned = alloc(4 * MiB), alloc(6 * MiB), alloc(65536), cuda.fake_pinned(c.c_size_t(8 * MiB))
host = c.create_string_buffer(4 * MiB); pageable = c.addressof(host)
calls = {{
{calls}}}
tell(**{{name: waits_for_gates(call) for name, call in calls.items()}})
"""
    )
    assert found == {name: waits for name, (waits, _) in CALLS.items()}


def test_a_functions_first_launch_has_no_gate_and_its_second_has_one(
    facts_of: Callable[[str], dict[str, object]],
) -> None:
    found = facts_of(
        """
new, seen = function("new:8"), [cuda.fake_waits()]
word().value = 0
for _ in range(2): launch(new, a); seen.append(cuda.fake_waits())
tell(gates=[later - earlier for earlier, later in zip(seen, seen[1:])])
"""
    )
    assert found["gates"] == [0, 1]


def test_a_functions_first_launch_in_a_capture_leaves_the_next_launch_its_gate(
    facts_of: Callable[[str], dict[str, object]],
) -> None:
    found = facts_of(
        """
s, graph = stream_create(), c.c_void_p()
ok(cuda.cuStreamBeginCapture_v2(s, 0))
launch(function("new:8"), a, stream=s)
ok(cuda.cuStreamEndCapture(s, c.byref(graph)))
word().value = 0; before = cuda.fake_waits()
launch(kernel, a)
tell(gates=cuda.fake_waits() - before)
"""
    )
    assert found["gates"] == 1
