"""A daemon with the real core whose commands come many launches after they were decided."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass

from daemon_side import EXECUTE, Event

from deepum.core import Core, CoreSettings
from deepum.core.records import COMMAND_BYTES

DISCARD = 3


@dataclass
class RawCommand:
    """As the core gave it."""

    raw: bytes

    @property
    def id(self) -> int:
        """Rises over all directions."""
        return int(struct.unpack_from("<Q", self.raw)[0])

    @id.setter
    def id(self, value: int) -> None:
        assert value == self.id

    @property
    def kind(self) -> int:
        """enum deepum_command_kind"""
        return self.raw[56]

    def pack(self) -> bytes:
        """The record."""
        return self.raw


class LateCore:
    """Decides at once and answers `launches` launches later; `released` counts what went out, by
    kind.
    """

    def __init__(self, launches: int) -> None:
        self._core = Core(CoreSettings.default(invalidation=1, launch_queue=0))
        self._late = launches
        self._launches = 0
        self._waiting: deque[tuple[int, RawCommand]] = deque()
        self.released: dict[int, int] = {}

    def __call__(self, event: Event) -> list[RawCommand]:
        """To be the `decide` of a FakeDaemon."""
        head = struct.pack(
            "<HBBIQ",
            2 + len(event.body) // 8,
            event.kind,
            event.flags,
            event.device,
            event.sequence,
        )
        self._core.process(head + event.body)
        given = self._core.take_command_bytes()
        self._launches += event.kind == EXECUTE
        self._waiting += [
            (self._launches + self._late, RawCommand(given[at : at + COMMAND_BYTES]))
            for at in range(0, len(given), COMMAND_BYTES)
        ]
        now = []
        while self._waiting and self._waiting[0][0] <= self._launches:
            command = self._waiting.popleft()[1]
            self.released[command.kind] = self.released.get(command.kind, 0) + 1
            now.append(command)
        return now
