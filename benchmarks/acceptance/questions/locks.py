"""Which calls stand still while another thread waits for a stream inside the driver? And does a
move that waits for its event hold up one of another stream?
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from acceptance.bench import Bench, Gate, host_us
from deepum.doctor.driver import MIB

_HELD_S = 0.25
_BEFORE_S = 0.06  # until the other thread is in its call
_LAUNCHES = 1500  # more than the driver's queue takes
_MOVES = 64


def answer(bench: Bench) -> dict[str, Any]:
    findings: dict[str, Any] = {"held_us": round((_HELD_S - _BEFORE_S) * 1e6)}
    if bench.simulated:  # its calls are carried out one at a time
        return findings | {"moves": _deferred(bench)}
    memory = _Memory(bench)
    for name, waits in memory.situations().items():
        findings[name] = {
            what: _beside(bench, waits, work) for what, work in memory.calls().items()
        }
    return findings | {"moves": _deferred(bench)}


class _Memory:
    """Memory and streams that the situations share."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.cuda = bench, bench.cuda
        self.plain = int(self.cuda("cuMemAlloc", MIB))
        self.managed, self.moved = self.cuda.managed(2 * MIB), self.cuda.managed(2 * MIB)
        self.word, self.own = self.cuda.pinned(8), self.cuda.stream()
        self.pageable = ctypes.create_string_buffer(MIB)
        self.event = self.cuda.event()
        bench.launch("read", self.plain, 32)
        bench.fill(self.managed, 2 * MIB, 1)
        bench.fill(self.moved, 2 * MIB, 1)

    def situations(self) -> dict[str, Callable[[Any], object] | None]:
        """What another thread does meanwhile, to the stream that is held up."""
        cuda = self.cuda
        host = ctypes.addressof(self.pageable)
        return {
            "nothing": None,
            "synchronise": lambda held: cuda("cuStreamSynchronize", held),
            "full_queue": self._fill_queue,
            "memset_of_managed": lambda _: cuda("cuMemsetD8", self.managed, 2, MIB),
            "copy_from_pageable": lambda held: cuda(
                "cuMemcpyHtoDAsync", self.plain, host, MIB, held
            ),
            "copy_to_pageable": lambda held: cuda("cuMemcpyDtoHAsync", host, self.plain, MIB, held),
            "allocate_managed": lambda _: cuda.free(cuda.managed(2 * MIB)),
            "free": self._free,
        }

    def calls(self) -> dict[str, Callable[[], object]]:
        """What is timed."""
        cuda = self.cuda
        return {
            "prefetch_us": lambda: cuda.prefetch(self.moved, 2 * MIB, cuda.gpu, self.own),
            "write_value_us": lambda: cuda("cuStreamWriteValue64", self.own, self.word, 1, 0),
            "event_us": lambda: cuda("cuEventRecord", self.event, self.own),
            "query_us": lambda: cuda.answer("cuEventQuery", self.event),
        }

    def _fill_queue(self, held: Any) -> None:
        for _ in range(_LAUNCHES):
            self.bench.launch("read", self.plain, 32, stream=held)

    def _free(self, _: Any) -> None:
        self.cuda("cuMemFree", int(self.cuda("cuMemAlloc", MIB)))


def _beside(
    bench: Bench, waits: Callable[[Any], object] | None, work: Callable[[], object]
) -> float:
    """Microseconds of the call."""
    cuda = bench.cuda
    # The legacy stream for what has none of its own, and one that the situation is given.
    held, legacy = cuda.stream(), cuda.api.CUstream(0)
    gate = Gate(cuda)
    gate.hold(held)
    gate.hold(legacy)
    timer = gate.open_after(_HELD_S)

    def other() -> None:
        cuda("cuCtxSetCurrent", cuda.context)
        assert waits is not None
        waits(held)

    thread = threading.Thread(target=other) if waits else None
    if thread:
        thread.start()
    time.sleep(_BEFORE_S)
    took = host_us(work)
    timer.join()
    if thread:
        thread.join()
    bench.wait(held)
    bench.wait(legacy)
    return took


def _deferred(bench: Bench) -> dict[str, Any]:
    """Moves behind an event that does not come for a while: how many calls return, either way; and
    whether a move of another stream, which waits for nothing, is done before.
    """
    cuda = bench.cuda
    size = 2 * MIB
    out, back = cuda.managed(_MOVES * size), cuda.managed(_MOVES * size)
    free = cuda.managed(size)
    findings: dict[str, Any] = {"calls": _MOVES}
    for name, ways in (("out", (out,)), ("in", (back,)), ("both", (out, back))):
        bench.fill(out, _MOVES * size, 1)
        bench.put(out, _MOVES * size, cuda.gpu)
        bench.put(back, _MOVES * size, cuda.host)
        bench.put(free, size, cuda.host)
        gate, busy = Gate(cuda), cuda.stream()
        streams = {address: cuda.stream() for address in ways}
        gate.hold(busy)
        event = cuda.event()
        cuda("cuEventRecord", event, busy)
        for stream in streams.values():
            cuda("cuStreamWaitEvent", stream, event, 0)
        timer = gate.open_after(2 * _HELD_S)
        times = []
        for i in range(_MOVES):
            for address, stream in streams.items():
                place = cuda.host if address == out else cuda.gpu
                at = address + i * size
                times.append(host_us(partial(cuda.prefetch, at, size, place, stream)))
        independent = cuda.stream()
        call_us = host_us(partial(cuda.prefetch, free, size, cuda.gpu, independent))
        until = time.perf_counter() + _HELD_S / 2
        done = False
        while not done and time.perf_counter() < until and not gate.word.value:
            done = cuda.answer("cuStreamQuery", independent) == "SUCCESS"
        slow = [i for i, took in enumerate(times) if took > 20_000]
        findings[name] = {
            "longest_us": max(times),
            "first_that_waits": slow[0] if slow else None,
            "of_another_stream_us": call_us,
            "done_before": done,
        }
        timer.join()
        begin = time.perf_counter()
        for stream in (*streams.values(), independent):
            bench.wait(stream)
        findings[name]["then_ms"] = round((time.perf_counter() - begin) * 1e3, 2)
    return findings
