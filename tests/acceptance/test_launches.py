"""What launches do, as far as an event log tells: what PyTorch handed out, rows of tables, and
which way copies go.
"""

from __future__ import annotations

from acceptance.launches import work_of
from deepum._core import lib

from deepum.core import BlockRange, events
from deepum.trace import TraceWriter, work
from deepum.trace.work import READ, WRITE, Work

MIB = 1 << 20
COPY, MEMSET = int(lib.DEEPUM_EXECUTE_COPY), int(lib.DEEPUM_EXECUTE_MEMSET)
SPARSE, GRAPH = int(lib.DEEPUM_EXECUTE_SPARSE), int(lib.DEEPUM_EXECUTE_GRAPH)


def made(writer: TraceWriter) -> list[Work]:
    return list(work.decode(work_of(events(writer.take()))))


def touched(one: Work) -> list[tuple[int, int, int]]:
    return [(access.slot, access.offset, access.bytes) for access in one.accesses]


def test_of_a_um_block_a_launch_uses_what_is_handed_out() -> None:
    writer = TraceWriter()
    writer.allocate(0, 4)
    for offset, size in ((0, MIB), (MIB, MIB // 2), (2 * MIB, 4 * MIB)):
        writer.block(True, 0, offset, size, 0)
    writer.block(False, 0, MIB, MIB // 2, 0)
    at = writer.execute(7, [BlockRange(0, 0, 2)])
    writer.execute(7, [BlockRange(0, 3, 1)])
    first, second = made(writer)
    assert (first.kind, first.sequence) == (work.LAUNCH, at)
    assert touched(first) == [(0, 0, MIB), (0, 2 * MIB, 2 * MIB)]
    assert touched(second) == []


def test_of_an_allocation_without_blocks_all_is_used() -> None:
    writer = TraceWriter()
    writer.allocate(0, 4)
    writer.execute(
        7, [BlockRange(0, 1, 2)], written=[BlockRange(0, 3, 1)], read=[BlockRange(0, 0, 1)]
    )
    writer.free(0)
    writer.execute(7, [BlockRange(0, 1, 2)])
    one, after = made(writer)
    assert touched(one) == [(0, 6 * MIB, 2 * MIB), (0, 0, 2 * MIB), (0, 2 * MIB, 4 * MIB)]
    assert [access.flags & (READ | WRITE) for access in one.accesses] == [WRITE, READ, READ | WRITE]
    assert touched(after) == []


def test_a_gather_uses_as_much_of_its_table_as_comes_out() -> None:
    writer = TraceWriter()
    writer.allocate(0, 64)  # the table
    writer.allocate(1, 1)
    writer.block(True, 0, 0, 128 * MIB, 0)
    writer.block(True, 1, MIB, MIB // 2, 0)  # somebody else's
    writer.block(True, 1, 0, MIB, 0)  # the result, handed out last
    writer.execute(7, [BlockRange(0, 0, 64), BlockRange(1, 0, 1)], flags=SPARSE)
    writer.execute(7, [BlockRange(0, 0, 64), BlockRange(1, 0, 1)])
    gather, dense = made(writer)
    rows = [access for access in gather.accesses if access.slot == 0]
    assert sum(access.bytes for access in rows) == MIB
    assert len({access.offset // (2 * MIB) for access in rows}) == 64  # spread over all of it
    assert [access for access in touched(gather) if access[0] == 1] == [(1, 0, MIB)]
    assert sum(access.bytes for access in dense.accesses) == 128 * MIB + MIB + MIB // 2


def test_copies_have_their_way_and_memsets_none() -> None:
    writer = TraceWriter()
    writer.allocate(0, 2)
    block = [BlockRange(0, 0, 1)]
    writer.execute(1, written=block, flags=COPY)
    writer.execute(1, read=block, flags=COPY)
    writer.execute(1, written=block, read=[BlockRange(0, 1, 1)], flags=COPY)
    writer.execute(1, written=block, flags=COPY | MEMSET)
    writer.execute(1, block, flags=GRAPH)
    into, out, inside, fill = made(writer)
    assert (into.kind, into.flags, into.device_bytes) == (work.COPY, work.TO_DEVICE, 2 * MIB)
    assert (out.kind, out.flags, out.device_bytes) == (work.COPY, 0, 2 * MIB)
    assert [(one.kind, one.flags) for one in (inside, fill)] == [(work.LAUNCH, work.UNCOUNTED)] * 2
