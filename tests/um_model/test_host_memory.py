"""Host memory of a size, with and without a disk behind it: what goes there, what comes back, and
when.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

BLOCK = 2 << 20
ALL = 0xFFFFFFFF
CPU = -1
READ, WRITE = 2.0, 1.0  # GB/s
DISK = {
    "disk_read_gbps": READ,
    "disk_write_gbps": WRITE,
    "disk_read_latency_ns": 12e3,
    "disk_write_latency_ns": 16e3,
}


class Reference:
    """The rules in plain Python, for whole blocks that move one after the other: what is where, and
    what the disk did.
    """

    def __init__(self, device: int, host: int, keeps: bool) -> None:
        self.room, self.size, self.keeps = device, host, keeps
        self.device: list[int] = []  # oldest first
        self.discarded: set[int] = set()
        self.memory: list[int] = []  # oldest first
        self.disk: set[int] = set()
        self.read = self.written = 0

    def enter(self, block: int, held: int | None = None) -> None:
        self.disk.discard(block)
        while len(self.memory) >= self.size and not self.keeps:
            victim = next((one for one in self.memory if one not in (block, held)), None)
            if victim is None:
                break
            self.memory.remove(victim)
            if victim not in self.disk:
                self.disk.add(victim)
                self.written += 1
        if len(self.memory) < self.size:
            self.memory.append(block)
        else:
            self.disk.add(block)
            self.written += 1

    def bring(self, block: int) -> None:
        """To the device, as its newest."""
        if block in self.device:
            return
        if len(self.device) == self.room:
            victim = next((one for one in self.device if one in self.discarded), self.device[0])
            self.device.remove(victim)
            if victim in self.discarded:
                self.discarded.remove(victim)
            else:
                self.enter(victim, held=block)
        self.read += block in self.disk and block not in self.memory
        self.forget(block)
        self.device.append(block)

    def forget(self, block: int) -> None:
        self.disk.discard(block)
        if block in self.memory:
            self.memory.remove(block)

    def renew(self, block: int) -> None:
        self.device.remove(block)
        self.device.append(block)

    def launch(self, block: int) -> None:
        self.bring(block)
        if block in self.discarded:
            self.discarded.remove(block)
            self.renew(block)

    def prefetch(self, block: int) -> None:
        self.bring(block)
        self.discarded.discard(block)
        self.renew(block)

    def evict(self, block: int) -> None:
        if block in self.device:
            self.device.remove(block)
            if block in self.discarded:
                self.discarded.remove(block)
            else:
                self.enter(block)

    def discard(self, block: int) -> None:
        self.forget(block)
        if block in self.device:
            self.discarded.add(block)
            self.renew(block)

    def use_on_host(self, block: int, write: bool) -> None:
        self.evict(block)
        if block in self.memory:
            self.memory.remove(block)
            self.memory.append(block)
        elif block in self.disk:
            self.read += 1
            self.enter(block)
            self.written -= block in self.disk and not write  # it stays there as it was
            self.disk.add(block)
        else:
            self.enter(block)
        if write and block in self.memory:
            self.disk.discard(block)


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_disk_does_what_the_reference_says(
    make_model: Callable[..., Any], seed: int, keeps: bool
) -> None:
    random = Random(seed)
    blocks, device, host = 24, random.randrange(1, 9), random.randrange(1, 14)
    model = make_model(
        blocks=device,
        host_memory_bytes=host * BLOCK,
        disk_buffer_bytes=4 * BLOCK,
        host_keeps=keeps,
        **DISK,
    )
    expected = Reference(device, host, keeps)
    stream = model.stream()
    model.map(0, blocks)
    for _ in range(400):
        block = random.randrange(blocks)
        match random.choice(
            (
                "launch",
                "launch",
                "launch",
                "prefetch",
                "prefetch",
                "evict",
                "evict",
                "discard",
                "write",
                "read",
            )
        ):
            case "launch":
                model.launch(stream, (block, 1, "w"))
                expected.launch(block)
            case "prefetch":
                model.prefetch(stream, block, 1)
                expected.prefetch(block)
            case "evict":
                model.prefetch(stream, block, 1, CPU)
                expected.evict(block)
            case "discard":
                model.discard(stream, block, 1)
                expected.discard(block)
            case what:
                model.cpu_access(block, 1, write=what == "write")
                expected.use_on_host(block, what == "write")
        model.synchronise(stream)
        found = [model.content(one) for one in range(blocks)]
        assert [one for one in range(blocks) if found[one].on_device == ALL] == sorted(
            expected.device
        )
        assert [one for one in range(blocks) if found[one].in_host_memory == ALL] == sorted(
            expected.memory
        )
        assert [one for one in range(blocks) if found[one].on_disk == ALL] == sorted(expected.disk)
        counters = model.counters()
        assert counters.host_bytes == len(expected.memory) * BLOCK <= host * BLOCK
        assert counters.bytes_disk_read == expected.read * BLOCK
        assert counters.bytes_disk_written == expected.written * BLOCK
    assert expected.read > 0 < expected.written


def on_disk(make_model: Callable[..., Any], blocks: int, **figures: float) -> tuple[Any, int]:
    """A model whose first blocks are on the disk, and a stream of it."""
    model = make_model(host_memory_bytes=4 * BLOCK, **DISK | figures)
    stream = model.stream()
    model.map(0, blocks + 4)
    model.on_cpu(0, blocks + 4)
    model.spend(1e9)  # until all of it is written
    assert all(model.content(block).on_disk == ALL for block in range(blocks))
    return model, stream


@pytest.mark.parametrize("buffered", [0, 1, 8])
def test_a_prefetch_reads_on_while_blocks_cross_the_link(
    make_model: Callable[..., Any], buffered: int
) -> None:
    """With a buffer the slower of the two, disk and link, sets the pace; without, one follows the
    other.
    """
    model, stream = on_disk(make_model, 32, disk_buffer_bytes=buffered * BLOCK)
    ns = model.elapsed(stream, lambda: model.prefetch(stream, 0, 32))
    read, link = BLOCK / READ, BLOCK / model.machine.h2d_gbps
    latency = 12e3 + model.machine.copy_latency_ns
    assert ns == pytest.approx(
        32 * read + link + latency
        if buffered
        else 32 * (read + link + 12e3) + model.machine.copy_latency_ns,
        rel=1e-3,
    )
    assert model.counters().bytes_h2d == model.counters().bytes_disk_read == 32 * BLOCK


def test_reads_begin_when_the_prefetch_is_asked_for_and_its_turn_has_come(
    make_model: Callable[..., Any],
) -> None:
    """Several prefetches in the queue are read ahead for as one: a pause between them would
    show.
    """
    model, stream = on_disk(make_model, 32, disk_buffer_bytes=8 * BLOCK)

    def one_by_one() -> None:
        for block in range(32):
            model.prefetch(stream, block, 1)

    again, other = on_disk(make_model, 32, disk_buffer_bytes=8 * BLOCK)
    streams = [again.stream() for _ in range(32)]

    def side_by_side() -> None:
        for block in range(32):
            again.prefetch(streams[block], block, 1)
        for each in streams:
            again.synchronise(each)

    in_order = model.elapsed(stream, one_by_one)
    queued = again.elapsed(other, side_by_side)
    assert queued == pytest.approx(32 * BLOCK / READ, rel=0.02)
    assert in_order == pytest.approx(
        32 * (BLOCK / READ + BLOCK / model.machine.h2d_gbps), rel=0.02
    ), "a stream asks for one at a time"


def test_a_fault_batch_waits_for_the_disk(make_model: Callable[..., Any]) -> None:
    model, stream = on_disk(make_model, 16, disk_buffer_bytes=16 * BLOCK)
    before = model.counters().stall_ns
    model.launch(stream, (0, 16, "r"))
    model.synchronise(stream)
    stall = model.counters().stall_ns - before
    assert model.counters().fault_batches == 1
    copied = model.machine.fault_ns_per_byte * BLOCK
    assert stall == pytest.approx(16 * BLOCK / READ + 12e3 + copied, rel=0.02), (
        "each block is copied while the next is read"
    )


def test_what_is_still_being_written_is_read_afterwards(make_model: Callable[..., Any]) -> None:
    model = make_model(host_memory_bytes=4 * BLOCK, disk_buffer_bytes=16 * BLOCK, **DISK)
    stream = model.stream()
    model.map(0, 20)
    model.on_cpu(0, 20)
    model.prefetch(stream, 15, 1)  # written last
    assert model.synchronise(stream) >= 16 * BLOCK / WRITE + BLOCK / READ


def test_room_is_made_at_the_disks_pace_beyond_its_buffer(make_model: Callable[..., Any]) -> None:
    model = make_model(host_memory_bytes=4 * BLOCK, disk_buffer_bytes=8 * BLOCK, **DISK)
    stream = model.stream()
    model.map(0, 40)
    model.launch(stream, (0, 40, "w"))
    link = BLOCK / model.machine.d2h_gbps
    into_memory = model.elapsed(stream, lambda: model.prefetch(stream, 0, 4, CPU))
    into_buffer = model.elapsed(stream, lambda: model.prefetch(stream, 4, 8, CPU))
    beyond = model.elapsed(stream, lambda: model.prefetch(stream, 12, 28, CPU))
    assert into_memory == pytest.approx(4 * link, rel=0.03)
    assert into_buffer == pytest.approx(8 * link, rel=0.03)
    assert beyond == pytest.approx(28 * BLOCK / WRITE, rel=0.05)
    assert model.counters().bytes_disk_written == 36 * BLOCK


def test_what_was_read_back_and_not_written_is_not_written_again(
    make_model: Callable[..., Any],
) -> None:
    model, _ = on_disk(make_model, 8)
    written = model.counters().bytes_disk_written
    for _ in range(3):
        model.cpu_access(0, 8, write=False)
    assert model.counters().bytes_disk_read == 3 * 8 * BLOCK
    assert model.counters().bytes_disk_written - written == 4 * BLOCK, "what was there before them"
    model.cpu_access(0, 8, write=True)
    model.cpu_access(0, 8, write=False)
    assert model.counters().bytes_disk_written - written > 4 * BLOCK


def test_a_duplicate_of_what_the_disk_has_costs_no_memory_and_a_write_ends_it(
    make_model: Callable[..., Any],
) -> None:
    model, stream = on_disk(make_model, 8)
    model.advise(0, 8, "READ_MOSTLY")
    used = model.counters().host_bytes
    model.prefetch(stream, 0, 8)
    model.synchronise(stream)
    assert all(
        model.content(block).on_disk == model.content(block).on_device == ALL for block in range(8)
    )
    assert model.counters().host_bytes == used
    model.prefetch(stream, 0, 8, CPU)
    model.synchronise(stream)
    assert model.counters().bytes_d2h == 0
    model.launch(stream, (0, 4, "w"))
    model.synchronise(stream)
    assert [model.content(block).on_disk for block in range(8)] == [0] * 4 + [ALL] * 4


def test_a_duplicate_in_memory_is_dropped_rather_than_written(
    make_model: Callable[..., Any],
) -> None:
    model = make_model(host_memory_bytes=4 * BLOCK, **DISK)
    stream = model.stream()
    model.map(0, 8)
    model.advise(0, 4, "READ_MOSTLY")
    model.on_cpu(0, 4)
    model.prefetch(stream, 0, 4)
    model.synchronise(stream)
    model.on_cpu(4, 4)
    assert model.counters().bytes_disk_written == 0
    assert [
        (model.content(block).on_device, model.content(block).on_host) for block in range(4)
    ] == [(ALL, 0)] * 4


def test_used_in_place_it_comes_into_memory_and_crosses_the_link(
    make_model: Callable[..., Any],
) -> None:
    model, stream = on_disk(make_model, 2)
    model.advise(0, 2, "PREFERRED_LOCATION", CPU)
    model.launch(stream, (0, 2, "r"))
    model.synchronise(stream)
    counters = model.counters()
    assert counters.bytes_disk_read == counters.bytes_h2d == 2 * BLOCK
    assert counters.stall_ns > 2 * BLOCK / READ
    model.launch(stream, (0, 2, "r"))
    model.synchronise(stream)
    assert model.counters().bytes_disk_read == 2 * BLOCK
    assert [model.content(block).in_host_memory for block in range(2)] == [ALL, ALL]


def test_discarded_and_unmapped_content_leaves_memory_and_disk(
    make_model: Callable[..., Any],
) -> None:
    model, stream = on_disk(make_model, 8)
    model.discard(stream, 0, 9)
    model.synchronise(stream)
    assert model.counters().host_bytes == 3 * BLOCK
    assert all(model.content(block).on_disk == 0 for block in range(8))
    model.launch(stream, (0, 8, "w"))
    model.synchronise(stream)
    assert model.counters().bytes_disk_read == 0
    model.unmap(0)
    assert model.counters().host_bytes == 0


def test_pinned_memory_takes_from_it(make_model: Callable[..., Any]) -> None:
    model, _ = on_disk(make_model, 0)
    assert model.pin(3)
    assert model.counters().host_bytes == 4 * BLOCK
    assert model.counters().bytes_disk_written == 3 * BLOCK
    assert not model.pin(2)
    assert model.unpin(3)
    assert not model.unpin(1)
    assert model.counters().host_bytes == BLOCK


def test_without_a_disk_the_peak_says_what_would_be_needed(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=4, host_memory_bytes=6 * BLOCK)
    stream = model.stream()
    assert model.holds(10)
    assert not model.holds(11)
    assert not model.holds(10, pinned=1)
    model.map(0, 10)
    assert not model.holds(1)
    model.launch(stream, (0, 10, "w"))
    model.synchronise(stream)
    assert model.counters().peak_host_bytes == 6 * BLOCK
    model.cpu_access(0, 10, write=True)
    assert model.counters().peak_host_bytes == 10 * BLOCK
    assert model.counters().bytes_disk_written == 0


def test_with_a_disk_managed_memory_has_no_limit(make_model: Callable[..., Any]) -> None:
    model = make_model(blocks=4, host_memory_bytes=6 * BLOCK, **DISK)
    assert model.holds(1000)
    assert not model.holds(0, pinned=7)


@pytest.mark.parametrize(
    "figures",
    [
        {"disk_read_gbps": 1.0},
        {"disk_read_gbps": -1.0, "disk_write_gbps": -1.0},
        {"disk_read_latency_ns": float("nan")},
    ],
)
def test_half_a_disk_is_refused(make_model: Callable[..., Any], figures: dict[str, float]) -> None:
    with pytest.raises(AssertionError):
        make_model(host_memory_bytes=BLOCK, **figures)
