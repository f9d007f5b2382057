"""libdeepum_arena.so on a runtime over the host's memory (tests/programs/arena_fake_cudart.c), in a
process of its own: `python native_allocator.py CASE RUNTIME`. Whatever is handed out is checked
against all that is in use, as intervals; a case prints what it found as JSON.
"""

from __future__ import annotations

import bisect
import ctypes
import json
import random
import sys
from collections.abc import Callable, Iterator

from deepum.arena import pytorch

MiB = 1 << 20


class Device:
    """Device 0. Raises AssertionError where what is handed out overlaps with what is in use."""

    def __init__(self, runtime: str, seconds: float = 0.2) -> None:
        self.fake = ctypes.CDLL(runtime, ctypes.RTLD_GLOBAL)
        self.fake.fake_held.restype = ctypes.c_size_t
        self.fake.fake_limit.argtypes = [ctypes.c_size_t]
        self.fake.fake_unfinished.restype = ctypes.c_long
        self._native = pytorch._library()
        self._native.deepum_arena_allocator_configure(seconds, 0)
        self._allocate = self._native.deepum_arena_allocator_allocate
        self._allocate.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self._allocate.restype = ctypes.c_void_p
        self._free = self._native.deepum_arena_allocator_free
        self._free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self._record = self._native.deepum_arena_allocator_record_stream
        self._record.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._begins: list[int] = []
        self._used: list[int] = []  # freed, but used on another stream as yet
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int, stream: int = 0) -> int | None:
        """Its address; None where memory is short."""
        address = self._allocate(size, 0, stream)
        self._forget_finished()
        if not address:
            return None
        assert address % 512 == 0
        at = bisect.bisect(self._begins, address)
        before = self._begins[at - 1] if at else 0
        assert not at or before + self._sizes[before] <= address
        assert at == len(self._begins) or address + size <= self._begins[at]
        self._begins.insert(at, address)
        self._sizes[address] = size
        return int(address)

    def free(self, address: int) -> None:
        self._free(address, self._sizes[address], 0, None)
        self._forget(address)

    def free_used(self, address: int, stream: int) -> None:
        """While it is used on that stream, too: nothing may be handed out there before that ends."""
        self._record(address, stream)
        self._free(address, self._sizes[address], 0, None)
        self._used.append(address)

    def finish(self) -> None:
        """All work ends, on all streams."""
        self.fake.fake_finish()
        self._forget_finished()

    def reset(self) -> None:
        """What is not in use goes back."""
        self._native.deepum_arena_allocator_reset()

    @property
    def used(self) -> int:
        """How many are freed and used as yet."""
        return len(self._used)

    def _forget_finished(self) -> None:
        if self.fake.fake_unfinished() == 0:
            for address in self._used:
                self._forget(address)
            self._used.clear()

    def _forget(self, address: int) -> None:
        self._begins.remove(address)
        del self._sizes[address]

    @property
    def counters(self) -> pytorch.Statistics:
        """Checked against what we know."""
        counters = pytorch.statistics()
        assert counters.held_bytes == self.fake.fake_held()
        rounded = {address: -(-size // 512) * 512 for address, size in self._sizes.items()}
        assert counters.live_bytes == sum(rounded.values()) - sum(
            rounded[one] for one in self._used
        )
        return counters


Script = list[tuple[str, int, int]]  # ("+", name, size), ("-", name, 0)


def iteration(rng: random.Random, count: int) -> Script:
    """Requests and frees of an iteration that leaves nothing."""
    script: Script = []
    alive: list[int] = []
    for name in range(count):
        size = rng.choice(
            [300, 4096, 70_000, MiB, 3 * MiB, 5 * MiB, 12 * MiB]
        ) + 512 * rng.randrange(64)
        script.append(("+", name, size))
        alive.append(name)
        while alive and rng.random() < 0.45:
            script.append(("-", alive.pop(rng.randrange(len(alive))), 0))
    rng.shuffle(alive)
    return script + [("-", name, 0) for name in alive]


def deviating(rng: random.Random, script: Script) -> Script:
    """Some requests left out, added, of other sizes, and freed later."""
    out = {name for kind, name, _ in script if kind == "+" and rng.random() < 0.03}
    late: list[int] = []
    found: Script = []
    for kind, name, size in script:
        if name in out:
            continue
        if kind == "-" and rng.random() < 0.05:
            late.append(name)
            continue
        if kind == "+" and rng.random() < 0.03:
            size = max(512, size + rng.randrange(-MiB, MiB))
        found.append((kind, name, size))
        if rng.random() < 0.03:
            extra = 1_000_000 + len(found)
            found += [("+", extra, rng.randrange(1, 4 * MiB))]
            late.append(extra)
    return found + [("-", name, 0) for name in late]


def run(device: Device, script: Script, stream: int = 0, leave: bool = False) -> None:
    """leave: not all of it is freed."""
    held: dict[int, int] = {}
    for kind, name, size in script:
        if kind == "+":
            address = device.allocate(size, stream)
            assert address is not None
            held[name] = address
        else:
            device.free(held.pop(name))
    assert leave or not held


def programs(device: Device) -> dict[str, int]:
    """Iterations that repeat, deviate, change for good and come back; what lives throughout."""
    rng = random.Random(5)
    kept = [device.allocate(rng.randrange(1, 9 * MiB)) for _ in range(20)]
    conflicts = deviations = 0
    for _ in range(6):
        script = iteration(rng, 60 + rng.randrange(100))
        for _ in range(4):
            run(device, script)
        before = device.counters
        run(device, script)
        after = device.counters
        assert after.planned - before.planned >= after.requests - before.requests - 8
        assert after.plan_bytes >= after.plan_load_bytes
        for _ in range(12):
            run(device, deviating(rng, script))
        conflicts += device.counters.conflicts - after.conflicts
        deviations += device.counters.deviating - after.deviating
        for _ in range(2):
            run(device, script)
    for address in kept:
        assert address is not None
        device.free(address)
    return {"conflicts": conflicts, "deviations": deviations, "plans": device.counters.plans}


def streams(device: Device) -> dict[str, int]:
    """Two streams, and memory that is used on another one when it is freed."""
    rng = random.Random(7)
    script = iteration(rng, 80)
    for _ in range(6):
        run(device, script, 1)
    assert device.counters.planned > 0
    used = 0
    for number in range(40):
        for stream in (1, 2):
            run(device, script if number % 3 else deviating(rng, script), stream)
        for stream in (1, 2):
            for _, _, size in script[:6]:
                if address := device.allocate(size, stream) if size else None:
                    device.free_used(address, 3 - stream)
        used = max(used, device.used)
        if number % 5 == 4:
            device.finish()
    return {"planned": device.counters.planned, "used": used}


def other_stream(device: Device) -> dict[str, bool]:
    """Memory freed on a stream is not handed out on another one."""
    device.free(device.allocate(200 * MiB) or 0)  # so much may be held from now on
    device.reset()
    found = {}
    for size in (4096, 3 * MiB, 40 * MiB):
        first = device.allocate(size, 1)
        assert first is not None
        device.free(first)
        other, same = device.allocate(size, 2), device.allocate(size, 1)
        found[str(size)] = other != first and same == first
    return found


def shortage(device: Device) -> dict[str, object]:
    """With half as much again as is in use at most, all is served; with less, a request fails, and those
    that fit are served afterwards.
    """
    rng = random.Random(3)
    script = iteration(rng, 120)
    live = most = 0
    sizes: dict[int, int] = {}
    for kind, name, size in script:
        sizes[name] = size or sizes[name]
        live += sizes[name] if kind == "+" else -sizes[name]
        most = max(most, live)
    device.fake.fake_limit(most + most // 2)
    for _ in range(5):
        run(device, script)
    planned = device.counters.planned
    run(device, iteration(rng, 20))  # out of the arena, where the driver has no more
    too_much = device.allocate(2 * most)
    assert device.counters.failures == 1
    for _ in range(3):
        run(device, script)
    return {
        "planned": planned,
        "failed": too_much is None,
        "more": device.counters.planned > planned,
    }


def all_given_back(device: Device) -> dict[str, int]:
    """One request may have all of the device, when nothing is in use."""
    script = iteration(random.Random(4), 100)
    for _ in range(5):
        run(device, script)
    assert device.counters.arena_bytes > 0
    whole = device.counters.held_bytes + 64 * MiB
    device.fake.fake_limit(whole)
    address = device.allocate(whole)
    assert address is not None
    counters = device.counters
    device.free(address)
    return {"arena": counters.arena_bytes}


def last_resort(device: Device) -> dict[str, bool]:
    """Where the driver has no more, what is free of the arena is handed out, though it is in use in
    part; on its own stream alone.
    """
    script = iteration(random.Random(4), 100)
    for _ in range(5):
        run(device, script)
    arena = device.counters.arena_bytes
    device.fake.fake_limit(device.counters.held_bytes)
    run(device, script[: next(i for i, (kind, *_) in enumerate(script) if kind == "-")], leave=True)
    before = device.counters.arena_live_bytes
    other = device.allocate(arena // 2, 5)
    found = device.allocate(arena // 2)
    return {
        "arena": 0 < before < device.counters.arena_live_bytes,
        "served": found is not None,
        "refused": other is None,
    }


def small_ones_make_room(device: Device) -> dict[str, bool]:
    """Free segments of small requests go back where a large one needs the memory."""
    device.fake.fake_limit(64 * MiB)
    small = [device.allocate(MiB // 2) for _ in range(100)]
    for address in small:
        device.free(address or 0)
    return {"served": device.allocate(60 * MiB) is not None}


def layers(device: Device) -> dict[str, int]:
    """A forward pass of equal layers and their backward pass: the iteration is planned, not the
    layer.
    """

    def step() -> None:
        forward = []
        for _ in range(30):
            temporary = device.allocate(2 * MiB)
            forward += [device.allocate(3 * MiB + 512 * n) for n in range(6)]
            device.free(temporary or 0)
        while forward:
            gradients = [device.allocate(5 * MiB + 512 * n) for n in range(4)]
            for _ in range(6):
                device.free(forward.pop() or 0)
            for one in gradients:
                device.free(one or 0)

    for _ in range(6):
        step()
    counters = device.counters
    return {
        "plan_requests": counters.plan_requests,
        "load": counters.plan_load_bytes,
        "plans": counters.plans,
    }


def kept_results(device: Device) -> dict[str, int]:
    """The program keeps a little of each iteration, and the last result until there is the next."""
    script = iteration(random.Random(9), 100)
    result = None
    for _ in range(12):
        run(device, script)
        device.allocate(512)
        new = device.allocate(6 * MiB)
        if result:
            device.free(result)
        result = new
    counters = device.counters
    return {
        "planned": counters.planned,
        "conflicts": counters.conflicts,
        "unplanned": counters.unplanned,
    }


CASES: dict[str, Callable[[Device], object]] = {
    one.__name__: one
    for one in (
        programs,
        streams,
        other_stream,
        shortage,
        all_given_back,
        last_resort,
        small_ones_make_room,
        layers,
        kept_results,
    )
}


def _arguments() -> Iterator[str]:
    yield from sys.argv[1:3]


if __name__ == "__main__":
    case, runtime = _arguments()
    print(json.dumps(CASES[case](Device(runtime))))
