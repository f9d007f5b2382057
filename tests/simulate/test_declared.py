"""Traces with declared reads: what the shim tells where PyTorch's operators declare them."""

from __future__ import annotations

from collections.abc import Iterable

from deepum._core import lib

from deepum.core import UM_BLOCK_BYTES, BlockRange, Execute, events
from deepum.simulate.mode import GATED
from deepum.simulate.policies import BY_NAME
from deepum.simulate.replay import machine, replay
from deepum.simulate.workload import load
from deepum.trace import Trace, TraceWriter, work
from deepum.trace.declared import declared

READ, WRITE = work.READ, work.WRITE


def access(slot: int, first: int, count: int, flags: int) -> work.Access:
    return work.Access(slot, flags, first * UM_BLOCK_BYTES, count * UM_BLOCK_BYTES)


def trace(*launches: tuple[Iterable[BlockRange], list[work.Access]]) -> Trace:
    writer = TraceWriter()
    writer.device(1 << 10)
    for slot in range(3):
        writer.allocate(slot, 32)
    for kernel, (touched, accesses) in enumerate(launches):
        writer.launch(kernel, touched, accesses, 1000.0)
    return writer.trace("declared")


def launch(made: Trace) -> Execute:
    (found,) = [event for event in events(made.events) if isinstance(event, Execute)]
    return found


def test_what_a_launch_only_reads_becomes_a_read_range_and_the_rest_stays_unknown() -> None:
    a, b, c = BlockRange(0, 0, 4), BlockRange(1, 0, 4), BlockRange(2, 0, 4)
    made = trace(((a, b, c), [access(0, 0, 4, WRITE), access(1, 0, 4, READ), access(2, 1, 1, 3)]))
    found = launch(declared(made))
    assert (found.written, found.read, found.unknown) == ((), (b,), (a, c))
    before = launch(made)
    assert before.unknown == (a, b, c), "the trace itself is as it was"
    assert (found.sequence, found.execution_hash) == (before.sequence, before.execution_hash)


def test_a_block_shared_at_the_edge_does_not_make_a_tensor_written() -> None:
    a, b = BlockRange(0, 0, 4), BlockRange(0, 3, 2)
    found = launch(declared(trace(((a, b), [access(0, 0, 4, READ), access(0, 3, 2, WRITE)]))))
    assert (found.read, found.unknown) == ((a,), (b,))


def test_perhaps_written_is_not_declared() -> None:
    a = BlockRange(0, 0, 4)
    found = launch(declared(trace(((a,), [access(0, 0, 4, READ | work.PERHAPS)]))))
    assert (found.read, found.unknown) == ((), (a,))


def test_copies_say_by_themselves_what_they_read() -> None:
    writer = TraceWriter()
    writer.device(1 << 10)
    writer.allocate(0, 32)
    to, source = BlockRange(0, 0, 2), BlockRange(0, 4, 2)
    writer.copy_inside(1, access(0, 0, 2, WRITE), access(0, 4, 2, READ), (to, source))
    made = writer.trace("copy")
    assert declared(made).events == made.events


def test_clean_pages_need_no_fault_with_declared_reads() -> None:
    policy = BY_NAME["deepum-declared"]
    preset = machine("v100-16gb")
    made = load("llama-7b-lora", 8, False, "v100-16gb").trace
    settings = policy.settings(int(preset.launch_queue))

    def ran(which: Trace) -> tuple[int, int, float]:
        found = replay(which, preset, settings, observe_times=True, mode=GATED)
        return found.core.bytes_dropped, found.core.faults_observed, found.ns

    dropped, faults, ns = ran(declared(made))
    assert dropped > 0 and faults == 0
    dropped_undeclared, faults, longer = ran(made)
    assert dropped > dropped_undeclared and faults == 0, "what was not declared may be written"
    assert ns < longer
    assert settings.writes == lib.DEEPUM_WRITES_BY_OPERATORS
