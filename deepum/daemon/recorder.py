"""Writes a session's event log (native/wire/records.h, deepum_log_header; docs/event-log.md)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deepum import __version__
from deepum._core import lib
from deepum.configuration.setting import Value
from deepum.core import Core, Ring
from deepum.core.records import COMMAND_BYTES
from deepum.daemon.planning import PLANNED
from deepum.daemon.sources import core_settings

_HEADER = struct.Struct("<8sII")
_VERSION = int(lib.DEEPUM_WIRE_VERSION)
_SETTINGS_BYTES = 2048  # padded with spaces, so that the outcome can be filled in at the end


_recording: set[Path] = set()
_recording_lock = threading.Lock()


def take_path(wanted: Path, pid: int, folder: str | None) -> Path:
    """The log of a run's first process has the name that was asked for; those of its other
    processes carry their id.

    A run is known by its statistics folder, and marks the name as taken there.
    """
    with _recording_lock:
        taken = wanted in _recording
        if folder is not None and Path(folder).is_dir():
            mark = Path(folder) / "recorded"
            taken = taken or mark.exists()
            with contextlib.suppress(OSError):
                mark.touch()
        path = wanted.with_name(f"{wanted.name}.{pid}") if taken else wanted
        _recording.add(path)
        return path


def give_path_back(path: Path) -> None:
    """No session writes there any more."""
    _recording.discard(path)


class Recorder:
    """The log of one session, and the turn of its loop that sees every command go by.

    The log holds events; of the commands it keeps their number and a digest, enough to see whether
    a replay gives the same. Nothing in it depends on the process or the clock: two runs with equal
    events give equal files.
    """

    def __init__(self, path: Path, values: Mapping[str, Value], profile: bytes | None) -> None:
        """Starts the file anew. Raises OSError."""
        self.path = path
        self._header: dict[str, Any] = {
            "deepum": __version__,
            "settings": asdict(core_settings(values)),
            "profile_sha256": hashlib.sha256(profile).hexdigest() if profile is not None else None,
            "events_bytes": None,
            "commands": None,
            "commands_sha256": None,
        }
        if values["policy"] == PLANNED:
            self._header["planned"] = True  # commands came of plans, too, which are in no log
        # Not blocking: a pipe without a reader is refused, and not waited for.
        self._file = os.fdopen(
            os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
            ),
            "wb",
        )
        self._bytes = 0
        self._commands = 0
        self._digest = hashlib.sha256()
        self._waiting = b""
        self._decided = 0
        self._published = 0
        self._failure: OSError | None = None
        self._write_header()

    def _write_header(self) -> None:
        text = json.dumps(self._header).encode().ljust(_SETTINGS_BYTES)
        self._file.write(_HEADER.pack(b"DEEPUMEV", _VERSION, len(text)) + text)

    def turn(self, ring: Ring, core: Core) -> tuple[bool, bool, bool]:
        """As `Ring.turn`, with the events written to the log until that fails: (something
        happened, the mover must be woken, the command ring is full).
        """
        records = b"" if self._waiting else ring.take()
        if not records and not self._waiting:
            return False, False, False
        if records:
            self._decided = max(self._decided, core.process(records))
            ring.tell_wants(core)
            self._keep(core, records)
        self._waiting = self._waiting[ring.write(self._waiting) * COMMAND_BYTES :]
        if not self._waiting:
            self._published = self._decided
        return True, ring.publish_decided(self._published), bool(self._waiting)

    @property
    def failure(self) -> OSError | None:
        """Why the log cannot go on, once all commands that the core gave are in the ring: from then
        on nothing is lost if the session goes on without the recorder. None: it goes on.
        """
        return None if self._waiting else self._failure

    @property
    def decided(self) -> int:
        """Sequence of the latest event that the core has."""
        return self._decided

    def steer(self, core: Core, records: bytes) -> None:
        """Events of the daemon's own, behind those so far: to the core and the log."""
        core.process(records)
        self._keep(core, records)

    def _keep(self, core: Core, records: bytes) -> None:
        given = core.take_command_bytes()
        self._waiting += given
        self._digest.update(given)
        self._commands += len(given) // COMMAND_BYTES
        self._bytes += len(records)
        if self._failure is None:
            try:
                self._file.write(records)
            except OSError as error:
                self._failure = error

    def close(self) -> None:
        """Completes the log. Raises OSError."""
        if self._file.closed:
            return
        self._header |= {
            "events_bytes": self._bytes,
            "commands": self._commands,
            "commands_sha256": self._digest.hexdigest(),
        }
        with self._file:
            self._file.seek(0)
            self._write_header()
