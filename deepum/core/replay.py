"""Event logs: recorded sessions on disk, and running them through a core again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from deepum._core import ffi, lib
from deepum.core.engine import Core
from deepum.core.records import Command
from deepum.core.settings import CoreSettings

_MAGIC = b"DEEPUMEV"


@dataclass(frozen=True)
class EventLog:
    """A recorded session: its settings and its event records."""

    settings: dict[str, Any]
    records: bytes

    @staticmethod
    def header(settings: dict[str, Any]) -> bytes:
        """The first bytes of a log; event records follow as they are."""
        text = json.dumps(settings).encode()
        text += b" " * (-len(text) % 8)
        native = ffi.new(
            "deepum_log_header *", {"version": lib.DEEPUM_WIRE_VERSION, "settings_bytes": len(text)}
        )
        native.magic = list(_MAGIC)
        return bytes(ffi.buffer(native)) + text

    @classmethod
    def read(cls, source: Path | BinaryIO) -> EventLog:
        """Raises ValueError when it is not a log of this version; a last record that was cut off is
        left out.
        """
        data = source.read_bytes() if isinstance(source, Path) else source.read()
        size = ffi.sizeof("deepum_log_header")
        if len(data) < size or data[:8] != _MAGIC:
            raise ValueError("not an event log")
        native = ffi.from_buffer("deepum_log_header *", data[:size])
        if native.version != lib.DEEPUM_WIRE_VERSION:
            raise ValueError(
                f"event log of version {native.version}, this is version {lib.DEEPUM_WIRE_VERSION}"
            )
        start = size + native.settings_bytes
        if len(data) < start:
            raise ValueError("event log cut off in its header")
        try:
            settings = json.loads(data[size:start])
        except RecursionError:
            raise ValueError("event log whose settings are nested too deeply") from None
        if not isinstance(settings, dict):
            raise ValueError("event log whose settings are no object")
        return cls(settings, data[start : start + _whole(memoryview(data)[start:])])


def _whole(records: memoryview) -> int:
    at = 0
    while at + 16 <= records.nbytes:
        length = int.from_bytes(records[at : at + 2], "little") * 8
        if length < 16 or at + length > records.nbytes:
            break
        at += length
    return at


def replay(
    log: EventLog | bytes, settings: CoreSettings | None = None, profile: bytes | None = None
) -> Iterator[Command]:
    """The commands that a core gives for recorded events, in order: the same as in the session, if
    the settings are.
    """
    core = Core(settings)
    if profile is not None:
        core.load_tables(profile)
    core.process(log.records if isinstance(log, EventLog) else log)
    yield from core.take_commands()
