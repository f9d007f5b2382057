"""Threads, forks, and what other libraries expect of functions that the shim stands in front of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, execute
from running import Ran

Run = Callable[..., Ran]


def test_threads_launch_while_others_allocate(
    run: Run, compile_c: Callable[..., Path], fake_driver: Path, listener: FakeDaemon
) -> None:
    program = compile_c("hook_threads.c", "threads", str(fake_driver / "libcuda.so.1"), "-lpthread")
    done = run([program, "4", "3000"])
    assert done.code == 0, done.err
    events = listener.events()
    launches = [execute(event) for event in events if event.kind == "execute"]
    lost = sum(int.from_bytes(event.body[:8], "little") for event in events if event.kind == "lost")
    assert len(launches) + lost >= 4 * 3000 and len(launches) > 0
    assert len({launch.hash for launch in launches}) > 32
    sequences = [event.sequence for session in listener.sessions for event in session.events]
    assert sequences == sorted(sequences)


def test_forked_children_neither_hang_nor_crash(
    run: Run, compile_c: Callable[..., Path], fake_driver: Path, listener: FakeDaemon
) -> None:
    program = compile_c("hook_fork.c", "fork", str(fake_driver / "libcuda.so.1"), "-lpthread")
    done = run([program, "after"])
    assert done.code == 0, (done.code, done.err)


def test_a_child_forked_before_cuda_is_a_program_of_its_own(
    run: Run, compile_c: Callable[..., Path], fake_driver: Path, listener: FakeDaemon
) -> None:
    program = compile_c("hook_fork.c", "fork", str(fake_driver / "libcuda.so.1"), "-lpthread")
    assert run([program, "before"]).code == 0
    listener.events()
    kinds = [
        [event.kind for event in session.events if event.kind == "execute"]
        for session in listener.sessions
    ]
    assert kinds == [["execute"], ["execute"]]


def test_a_driver_that_calls_itself_is_seen_once(run: Run, listener: FakeDaemon) -> None:
    done = run(
        "start(); a = alloc(4 * MiB)\nok(cuda.cuLaunchCooperativeKernel(function('k:8'), 1, "
        "1, 1, 1, 1, 1, 0, None, pointers(a)))"
    )
    assert done.code == 0, done.err
    assert sum(event.kind == "execute" for event in listener.events()) == 1


@pytest.mark.parametrize("disabled", ["0", "1"])
def test_the_profiler_still_gets_its_memory_reports(
    run: Run, compile_c: Callable[..., Path], disabled: str
) -> None:
    library = compile_c(
        "hook_libc10.c", "torch/libc10.so", "-shared", "-fPIC", "-Wl,-soname,libc10.so"
    )
    facts = run(
        f"""
import os
profiler = c.CDLL({str(library)!r}, mode=os.RTLD_LOCAL | os.RTLD_NOW)
profiler.profiler_sum.restype = c.c_int64
report = c.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [c.c_void_p, c.c_int64, c.c_size_t, c.c_size_t, c.c_int16]
report(0x1000, 512, 1000, 20000, 1); report(0x1000, -512, 1000, 20000, 0); report(None, 64, 0, 0, 1)
tell(sum=profiler.profiler_sum(), calls=profiler.profiler_calls())
""",
        DEEPUM_DISABLE=disabled,
    ).facts()
    assert facts == {"sum": 42066, "calls": 3}
