"""What do a launch, a value written by a stream, an event and a host function cost, and how far may
the host run ahead?
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

from acceptance.bench import Bench, Gate

_MOST_QUEUED = 20_000
_STANDSTILL_S = 0.1  # a launch that takes so long waits for room in the queue
# As native/loops.c numbers them.
_WHAT = ("launch", "with_write_value", "with_event", "with_host_function")
_ROUNDS = 3


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    memory = int(cuda("cuMemAlloc", 1 << 16))
    bench.launch("read", memory, 32)
    bench.wait()
    loops = os.environ.get("DEEPUM_ACCEPTANCE_LOOPS")  # set by the runner, once it is compiled
    findings = _loops(bench, memory, loops) if loops else {"loops": "were not compiled"}
    return {**findings, "launch_queue": _queue(bench, memory)}


def _loops(bench: Bench, memory: int, path: str) -> dict[str, Any]:
    """Microseconds a launch: of the host's time, and until all are done."""
    cuda = bench.cuda
    count = 200 if bench.short else 5000
    word = cuda.pinned(8)
    event = cuda("cuEventCreate", cuda.api.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
    run = ctypes.CDLL(path).deepum_loops
    values = [ctypes.c_uint64(value) for value in (memory, 32, 4)]
    parameters = (ctypes.c_void_p * 3)(*[ctypes.addressof(value) for value in values])
    function, stream = (
        ctypes.c_void_p(int(handle)) for handle in (cuda.kernel("read"), bench.stream)
    )
    findings: dict[str, Any] = {"launches": count}
    for number, name in enumerate(_WHAT):
        for _ in range(_ROUNDS):  # the first has the driver's own preparations in it
            host, done = ctypes.c_double(), ctypes.c_double()
            arguments = (
                function,
                stream,
                parameters,
                ctypes.c_uint64(word),
                ctypes.c_void_p(int(event)),
                number,
                count,
            )
            if code := run(*arguments, ctypes.byref(host), ctypes.byref(done)):
                findings[name] = f"error {code}"
                break
            for what, value in (("host_us", host.value), ("done_us", done.value)):
                findings[f"{name}_{what}"] = min(
                    round(value / count, 3), findings.get(f"{name}_{what}", 1e9)
                )
    return findings


def _queue(bench: Bench, memory: int) -> int | None:
    """Launches that a stream takes while the GPU stands still; None if more than were tried."""
    gate, stream = Gate(bench.cuda), bench.cuda.stream()
    gate.hold(stream)
    timer = gate.open_after(2.0)
    depth = None
    for number in range(_MOST_QUEUED):
        begin = time.perf_counter()
        bench.launch("read", memory, 32, stream=stream)
        if time.perf_counter() - begin > _STANDSTILL_S:
            depth = number
            break
        if gate.word.value:
            break
    gate.open()
    timer.join()
    bench.wait(stream)
    return depth
