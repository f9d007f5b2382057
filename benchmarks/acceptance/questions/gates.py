"""What does a wait for a value cost a launch, and what else stands still while a stream waits for
one: other streams, prefetches, calls?
"""

from __future__ import annotations

import threading
import time
from typing import Any

from acceptance.bench import Bench, Gate, host_us
from deepum.doctor.driver import MIB

_HELD_S = 0.4
_STREAMS = 64
_LAUNCHES = 500


def answer(bench: Bench) -> dict[str, Any]:
    memory = int(bench.cuda("cuMemAlloc", 1 << 16))
    bench.launch("read", memory, 32)
    bench.wait()
    findings: dict[str, Any] = {"launches": _LAUNCHES}
    for name, gated in (("plain", False), ("gated", True)):
        findings[name] = _chain(bench, memory, gated)
    findings["while_a_stream_waits"] = _beside(bench, memory)
    return findings


def _chain(bench: Bench, memory: int, gated: bool) -> dict[str, float]:
    """Launches one behind the other, each of them behind a wait for a value that another stream has
    written long ago.
    """
    cuda = bench.cuda
    word, stream, writer = cuda.pinned(8), cuda.stream(), cuda.stream()
    at_least = cuda.api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ.value
    cuda("cuStreamWriteValue64", writer, word, _LAUNCHES, 0)
    bench.wait(writer)

    def queue() -> None:
        for value in range(1, _LAUNCHES + 1):
            if gated:
                cuda("cuStreamWaitValue64", stream, word, value, at_least)
            bench.launch("read", memory, 32, stream=stream)

    begin = time.perf_counter()
    gpu_ms = bench.milliseconds(queue, stream)
    return {
        "gpu_us": round(gpu_ms * 1e3 / _LAUNCHES, 3),
        "host_us": round((time.perf_counter() - begin) * 1e6 / _LAUNCHES, 3),
    }


def _beside(bench: Bench, memory: int) -> dict[str, Any]:
    """One stream of many waits for a value: which of the others do not get on until it is written,
    and which calls do not return?
    """
    cuda = bench.cuda
    size = bench.whole(16 * MIB)
    managed, plain = cuda.managed(size), int(cuda("cuMemAlloc", 1 << 16))
    bench.put(managed, size, cuda.host)
    streams, held, moves, gate = (
        [cuda.stream() for _ in range(_STREAMS)],
        cuda.stream(),
        cuda.stream(),
        Gate(cuda),
    )
    gate.hold(held)
    bench.launch("read", memory, 32, stream=held)
    for stream in streams:
        bench.launch("read", memory, 32, stream=stream)
    timer = gate.open_after(_HELD_S)
    begin = time.perf_counter()
    findings: dict[str, Any] = {
        "prefetch_host_us": host_us(lambda: cuda.prefetch(managed, size, cuda.gpu, moves)),
        "stream_create_host_us": host_us(cuda.stream),
        "event_host_us": host_us(lambda: cuda("cuEventRecord", cuda.event(), moves)),
    }
    time.sleep(max(0.0, _HELD_S / 2 - (time.perf_counter() - begin)))
    early = time.perf_counter() - begin < 0.9 * _HELD_S
    stuck = [stream for stream in streams if cuda.answer("cuStreamQuery", stream) != "SUCCESS"]
    findings |= {
        "streams": len(streams),
        "streams_held_up": len(stuck) if early else None,  # null: a call did not come back in time
        "prefetch_held_up": cuda.answer("cuStreamQuery", moves) != "SUCCESS" if early else None,
    }
    timer.join()
    bench.wait(held)
    findings["prefetch_beside_a_free_us"] = _beside_a_free(bench, memory, managed, size, plain)
    return findings


def _beside_a_free(bench: Bench, memory: int, managed: int, size: int, plain: int) -> float | None:
    """The host's time of a prefetch while another thread frees memory, which waits for a stream
    that waits for a value.
    """
    cuda = bench.cuda
    if bench.simulated:
        return None  # one call at a time: the simulated driver's free holds up all others
    bench.put(managed, size, cuda.host)
    held, moves, gate = cuda.stream(), cuda.stream(), Gate(cuda)
    gate.hold(held)
    bench.launch("read", memory, 32, stream=held)
    timer = gate.open_after(_HELD_S)

    def free() -> None:
        cuda("cuCtxSetCurrent", cuda.context)
        cuda("cuMemFree", plain)

    thread = threading.Thread(target=free)
    thread.start()
    time.sleep(_HELD_S / 4)
    took = host_us(lambda: cuda.prefetch(managed, size, cuda.gpu, moves))
    timer.join()
    thread.join()
    bench.wait(moves)
    return took
