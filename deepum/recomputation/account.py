"""A second account of a rewritten program, which knows nothing of how it was made: memory by bytes,
content by what it was computed of.

The content of a byte is named by the launch that wrote it and the contents that this one read, so
that two launches are the same where they compute the same of the same. Both programs are followed;
every launch of the first has to be launched by the second, in the same order, with the same content
in what it reads; whatever else the second launches has to be one of those over again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from deepum.core import Allocate, Block, Execute, Free, events, events_of
from deepum.trace import Trace, work
from deepum.trace.work import Access, Work


@dataclass
class _Memory:
    """Content by stretches: (start, end, name), in order, without gaps in between."""

    stretches: list[tuple[int, int, bytes]] = field(default_factory=list)

    def read(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """What is there: (bytes, name)."""
        found: list[tuple[int, bytes]] = []
        for low, high, name in self.stretches:
            low, high = max(low, start), min(high, end)
            if low < high:
                if found and found[-1][1] == name:
                    found[-1] = found[-1][0] + high - low, name
                else:
                    found.append((high - low, name))
        return found

    def write(self, start: int, end: int, name: bytes) -> None:
        """And is there from now on."""
        kept = []
        for low, high, before in self.stretches:
            if low < start:
                kept.append((low, min(high, start), before))
            if high > end:
                kept.append((max(low, end), high, before))
        self.stretches = sorted([*kept, (start, end, name)])


@dataclass(frozen=True)
class Launched:
    """A launch, copy or memset: what it is, and what it read, by a name of both."""

    sequence: int
    name: bytes
    reads_gone: bool


class _Account:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._memory: dict[
            int, dict[int, tuple[int, _Memory]]
        ] = {}  # by slot, by offset of a block
        self._of_pytorch = {
            (event.slot, event.generation) for event in events_of(trace.events, Block)
        }
        self._from_host = 0

    def launches(self) -> Iterator[Launched]:
        """All of them, in order."""
        works = work.decode(self._trace.work)
        one = next(works, None)
        for event in events(self._trace.events):
            if isinstance(event, Allocate):
                self._memory.setdefault(event.slot, {})
                if (event.slot, event.generation) not in self._of_pytorch:
                    self._memory[event.slot][0] = event.bytes, _fresh(event.bytes)
            elif isinstance(event, Free):
                self._memory.pop(event.slot, None)
            elif isinstance(event, Block):
                blocks = self._memory[event.slot]
                blocks.pop(event.offset, None)
                if event.kind == "block_active":
                    blocks[event.offset] = event.bytes, _fresh(event.bytes)
            while one is not None and one.sequence <= event.sequence:
                if isinstance(event, Execute) and one.kind in (work.LAUNCH, work.COPY):
                    yield self._launch(event, one)
                one = next(works, None)

    def _launch(self, event: Execute, one: Work) -> Launched:
        name = hashlib.blake2b(digest_size=16)
        copies = one.kind == work.COPY
        identity = (0 if copies else event.execution_hash, one.kind, one.flops, one.tiles, one.ns)
        name.update(repr(identity).encode())
        gone = False
        written: list[tuple[_Memory, int, int, int]] = []
        for access in one.accesses:
            if access.slot == work.BY_ADDRESS:
                continue
            flags = access.flags
            if copies:
                flags = work.WRITE if one.flags & work.TO_DEVICE else work.READ
            met = self._met(access)
            if met is None:
                gone = True
                continue
            start, memory = met
            end = start + access.bytes
            name.update(repr((flags, start, access.bytes)).encode())
            if flags & (work.READ | work.PERHAPS) and not flags & work.WRITTEN_FIRST:
                for size, content in memory.read(start, end):
                    name.update(repr((size, content)).encode())
            if flags & (work.WRITE | work.PERHAPS):
                written.append((memory, start, end, len(written)))
        if copies and one.flags & work.TO_DEVICE:
            self._from_host += 1  # another thing each time
            name.update(repr(self._from_host).encode())
        made = name.digest()
        for memory, start, end, number in written:
            memory.write(start, end, made + bytes([number % 256]))
        return Launched(event.sequence, made, gone)

    def _met(self, access: Access) -> tuple[int, _Memory] | None:
        """The block that has it, and where it begins there; None where nobody has it."""
        for offset, (size, memory) in self._memory.get(access.slot, {}).items():
            if offset <= access.offset and access.offset + access.bytes <= offset + size:
                return access.offset - offset, memory
        return None


def _fresh(size: int) -> _Memory:
    return _Memory([(0, size, b"fresh")])


def disagreement(original: Trace, rewritten: Trace) -> str | None:
    """Where the second program does not do what the first does; None: nowhere."""
    known = set()
    wanted = iter([*_Account(original).launches(), None])
    after = next(wanted)
    for launched in _Account(rewritten).launches():
        if launched.reads_gone:
            return f"launch {launched.sequence}: touches memory that nobody has"
        if after is not None and launched.name == after.name:
            known.add(after.name)
            after = next(wanted)
        elif launched.name not in known:
            return f"launch {launched.sequence}: is none of the program's, or reads something else"
    return None if after is None else f"launch {after.sequence} of the program: is never launched"
