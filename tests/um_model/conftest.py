"""A thin Python face of the model's C face, for tests that read as claims about unified memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from deepum._core import ffi, lib

BLOCK = 2 << 20
REGION = 64 << 10
CPU = -1
BASE = 1 << 40  # address of block 0


class Model:
    """One engine. Memory is named by block number; an access is (first block, blocks, "r", "w" or
    "rw").
    """

    def __init__(
        self,
        machine: str = "v100-16gb",
        blocks: int = 0,
        devices: int = 1,
        density: bool = True,
        seed: int = 0,
        **figures: float,
    ) -> None:
        native = ffi.new("deepum_machine *")
        assert lib.deepum_machine_find(machine.encode(), native) == 0
        for name, value in figures.items():
            setattr(native, name, value)
        options = ffi.new(
            "deepum_model_options *",
            {"devices": devices, "memory_bytes": blocks * BLOCK, "density_prefetcher": density},
        )
        options.random_eviction_seed = seed
        self.machine: Any = native
        self.native = ffi.gc(
            lib.deepum_model_create_with(native, options), lib.deepum_model_destroy
        )
        assert self.native != ffi.NULL

    # hosts
    def helper(self) -> int:
        return int(lib.deepum_model_add_helper(self.native))

    def now(self, host: int = 0) -> float:
        return float(lib.deepum_model_now(self.native, host))

    def spend(self, ns: float, host: int = 0) -> None:
        lib.deepum_model_spend(self.native, host, ns)

    def program_call(self) -> None:
        lib.deepum_model_program_call(self.native)

    # memory
    def map(self, first: int, blocks: int, device: int = 0) -> None:
        assert (
            lib.deepum_model_map_managed(self.native, BASE + first * BLOCK, blocks * BLOCK, device)
            == 0
        )

    def map_device(self, first: int, blocks: int, device: int = 0) -> None:
        assert (
            lib.deepum_model_map_device(self.native, BASE + first * BLOCK, blocks * BLOCK, device)
            == 0
        )

    def unmap(self, first: int) -> None:
        lib.deepum_model_unmap(self.native, BASE + first * BLOCK)

    def resident(self, blocks: Sequence[int], device: int = 0) -> list[int]:
        """Which of the blocks have their first region on the device."""
        return [
            block
            for block in blocks
            if lib.deepum_model_is_resident(self.native, device, BASE + block * BLOCK)
        ]

    def regions(self, block: int, device: int = 0) -> int:
        """Mask of the 64 KiB regions of a block that are on the device."""
        return sum(
            lib.deepum_model_is_resident(self.native, device, BASE + block * BLOCK + r * REGION)
            << r
            for r in range(32)
        )

    def content(self, block: int) -> Any:
        """Where the block's content is, by region."""
        result = ffi.new("deepum_model_content *")
        assert lib.deepum_model_get_content(self.native, BASE + block * BLOCK, result) == 0
        return result

    def pin(self, blocks: int) -> bool:
        return bool(lib.deepum_model_pin(self.native, blocks * BLOCK) == 0)

    def unpin(self, blocks: int) -> bool:
        return bool(lib.deepum_model_unpin(self.native, blocks * BLOCK) == 0)

    def holds(self, managed: int, pinned: int = 0) -> bool:
        return bool(lib.deepum_model_holds(self.native, managed * BLOCK, pinned * BLOCK))

    def free_bytes(self, device: int = 0) -> int:
        return int(lib.deepum_model_free_bytes(self.native, device))

    # streams
    def stream(self, device: int = 0) -> int:
        made = int(lib.deepum_model_add_stream(self.native, device))
        assert made >= 0
        return made

    def event(self) -> int:
        return int(lib.deepum_model_add_event(self.native))

    def launch(
        self, stream: int, *accesses: tuple[int, int, str], ns: float = 0, host: int = 0
    ) -> None:
        """ns: compute time (the machine's shortest kernel or memory bandwidth may make it
        longer).
        """
        self.launch_bytes(
            stream,
            *((BASE + first * BLOCK, count * BLOCK, kind) for first, count, kind in accesses),
            ns=ns,
            host=host,
        )

    def launch_bytes(
        self, stream: int, *accesses: tuple[int, int, str], ns: float = 0, host: int = 0
    ) -> None:
        native = ffi.new(
            "deepum_model_access[]",
            [(address, count, "r" in kind, "w" in kind) for address, count, kind in accesses],
        )
        flops = ns * self.machine.fp32_gflops * self.machine.fp32_sustained
        assert (
            lib.deepum_model_launch(
                self.native, host, stream, native, len(accesses), flops, 0, 0, 0.0, 0
            )
            == 0
        )

    def prefetch(
        self, stream: int, first: int, blocks: int, location: int = 0, host: int = 0
    ) -> None:
        assert (
            lib.deepum_model_prefetch(
                self.native, host, stream, self._ranges(first, blocks), 1, location
            )
            == 0
        )

    def discard(
        self, stream: int, first: int, blocks: int, then: int | None = None, host: int = 0
    ) -> None:
        result = lib.deepum_model_discard(
            self.native,
            host,
            stream,
            self._ranges(first, blocks),
            1,
            0 if then is None else then,
            then is not None,
        )
        assert result == 0

    def advise(self, first: int, blocks: int, advice: str, location: int = 0) -> None:
        number = getattr(lib, "DEEPUM_MODEL_" + advice)
        assert (
            lib.deepum_model_advise(
                self.native, 0, self._ranges(first, blocks), 1, number, location
            )
            == 0
        )

    def serve_advice(
        self, stream: int, first: int, blocks: int, advice: str, location: int = 0
    ) -> None:
        """In stream order: the server gives it while the stream stands still."""
        number = getattr(lib, "DEEPUM_MODEL_" + advice)
        assert (
            lib.deepum_model_serve_advice(
                self.native, 0, stream, self._ranges(first, blocks), 1, number, location
            )
            == 0
        )

    def copy(
        self, stream: int, first: int, blocks: int, kind: str, host_address: int = 1 << 30
    ) -> None:
        managed = (BASE + first * BLOCK, blocks * BLOCK)
        host = (host_address, blocks * BLOCK)
        pair = (managed, host) if kind == "H2D" else (host, managed)
        assert (
            lib.deepum_model_copy(
                self.native, 0, stream, pair[0], pair[1], getattr(lib, "DEEPUM_MODEL_COPY_" + kind)
            )
            == 0
        )

    def fill(self, stream: int, first: int, blocks: int) -> None:
        assert (
            lib.deepum_model_fill(self.native, 0, stream, (BASE + first * BLOCK, blocks * BLOCK))
            == 0
        )

    def cpu_access(self, first: int, blocks: int, write: bool) -> None:
        assert (
            lib.deepum_model_cpu_access(
                self.native, 0, (BASE + first * BLOCK, blocks * BLOCK), write
            )
            == 0
        )

    def record(self, event: int, stream: int, host: int = 0) -> None:
        assert lib.deepum_model_record(self.native, host, event, stream) == 0

    def wait(self, stream: int, event: int, host: int = 0) -> None:
        assert lib.deepum_model_wait(self.native, host, stream, event) == 0

    # progress
    def query(self, event: int, host: int = 0) -> bool:
        return bool(lib.deepum_model_query(self.native, host, event))

    def query_stream(self, stream: int, host: int = 0) -> bool:
        return bool(lib.deepum_model_query_stream(self.native, host, stream))

    def synchronise(self, stream: int, host: int = 0) -> float:
        """Waits for a stream; the host's clock then."""
        assert lib.deepum_model_synchronise_stream(self.native, host, stream) == 0
        return self.now(host)

    def synchronise_device(self, device: int = 0) -> float:
        assert lib.deepum_model_synchronise_device(self.native, 0, device) == 0
        return self.now()

    def time(self, event: int) -> float:
        return float(lib.deepum_model_event_time(self.native, event))

    def elapsed(self, stream: int, work: Callable[[], None]) -> float:
        """Virtual time that queued work takes on an idle stream, between two events."""
        start, end = self.event(), self.event()
        self.synchronise(stream)
        self.record(start, stream)
        work()
        self.record(end, stream)
        self.synchronise(stream)
        return self.time(end) - self.time(start)

    def counters(self, device: int = CPU) -> Any:
        result = ffi.new("deepum_model_counters *")
        assert lib.deepum_model_get_counters(self.native, device, result) == 0
        return result

    def violations(self) -> int:
        return int(lib.deepum_model_violation_count(self.native))

    def faults(self) -> list[tuple[int, int]]:
        """(block, faults) since the last call."""
        buffer = ffi.new("deepum_model_fault[]", 4096)
        count = lib.deepum_model_take_faults(self.native, buffer, 4096)
        return [((buffer[i].address - BASE) // BLOCK, buffer[i].faults) for i in range(count)]

    def observed(self) -> list[tuple[int, int, str, float, float]]:
        """(block, faults, "r" or "w", start, end) since the last call."""
        buffer = ffi.new("deepum_model_fault[]", 1 << 16)
        count = lib.deepum_model_take_faults(self.native, buffer, 1 << 16)
        taken = [buffer[i] for i in range(count)]
        return [
            ((f.address - BASE) // BLOCK, f.faults, "w" if f.write else "r", f.start_ns, f.end_ns)
            for f in taken
        ]

    def faults_dropped(self) -> int:
        return int(lib.deepum_model_faults_dropped(self.native))

    def on_cpu(self, first: int, blocks: int) -> None:
        """The program writes the blocks on the CPU, so that they have content there."""
        self.cpu_access(first, blocks, write=True)

    @staticmethod
    def _ranges(first: int, blocks: int) -> Any:
        return ffi.new("deepum_model_range[]", [(BASE + first * BLOCK, blocks * BLOCK)])


@pytest.fixture
def make_model() -> Iterator[Callable[..., Model]]:
    yield Model
