"""A prefetch on a stream that waits for an event: does the call come back before the event, does
the move keep to the order, and how fast is it then, either way and both at once? And does a
discard's call come back?
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from acceptance.bench import Bench, Gate, gbps
from deepum.doctor.driver import MIB

_HELD_S = 0.3


def answer(bench: Bench) -> dict[str, Any]:
    cuda = bench.cuda
    size = bench.whole(128 * MIB)
    memory, other = cuda.managed(size), cuda.managed(size)
    bench.fill(memory, size, 1)
    bench.fill(other, size, 2)
    findings: dict[str, Any] = {"bytes": size}
    for name, start, place in (("to_host", cuda.gpu, cuda.host), ("to_gpu", cuda.host, cuda.gpu)):
        bench.put(memory, size, start)
        findings[name] = _behind_event(bench, size, [_prefetch(bench, memory, size, place)])
    bench.put(memory, size, cuda.gpu)
    bench.put(other, size, cuda.host)
    findings["both"] = _behind_event(
        bench,
        2 * size,
        [_prefetch(bench, memory, size, cuda.host), _prefetch(bench, other, size, cuda.gpu)],
    )
    if bench.has("cuMemDiscardBatchAsync"):
        bench.put(memory, size, cuda.gpu)
        findings["discard"] = _behind_event(
            bench,
            size,
            [lambda stream: bench.batch("cuMemDiscardBatchAsync", [(memory, size)], None, stream)],
        )
    return findings


def _prefetch(bench: Bench, memory: int, size: int, place: Any) -> Callable[[Any], None]:
    return lambda stream: bench.cuda.prefetch(memory, size, place, stream)


def _behind_event(bench: Bench, size: int, moves: list[Callable[[Any], None]]) -> dict[str, Any]:
    """One stream a move, all behind one event of a stream that is held up; `size`: bytes of all
    moves.
    """
    cuda = bench.cuda
    gate, busy = Gate(cuda), cuda.stream()
    streams = [cuda.stream() for _ in moves]
    gate.hold(busy)
    event = cuda.event()
    cuda("cuEventRecord", event, busy)
    for stream in streams:
        cuda("cuStreamWaitEvent", stream, event, 0)
    timer = gate.open_after(_HELD_S)
    begin = time.perf_counter()
    host = []
    for stream, move in zip(streams, moves, strict=True):
        before = time.perf_counter()
        move(stream)
        host.append(round((time.perf_counter() - before) * 1e6, 2))
    returned = time.perf_counter() - begin
    early = returned < _HELD_S / 2
    done_early = (
        any(cuda.answer("cuStreamQuery", stream) == "SUCCESS" for stream in streams)
        if early
        else None
    )
    timer.join()
    opened = time.perf_counter()
    for stream in streams:
        bench.wait(stream)
    waited_ms = (time.perf_counter() - opened) * 1e3
    findings = {
        "returns_before_the_event": early,
        "host_us": host,
        "moved_before_the_event": done_early,
    }
    if early and not bench.simulated:  # the simulated GPU's time is not the clock's
        findings["gbps_behind_it"] = gbps(size, waited_ms)
    return findings
