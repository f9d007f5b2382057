"""One program's session: events out of its ring, through a core, commands back."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from deepum.configuration.resolve import resolve
from deepum.configuration.setting import Value
from deepum.core import Core, Plan, Ring, RingError
from deepum.daemon.hello import Hello, RefusedError
from deepum.daemon.planning import PLANNED, SessionPlanning, session_planning
from deepum.daemon.recorder import Recorder
from deepum.daemon.report import Report
from deepum.daemon.sources import load_plan, load_profile, make_core, save_plan, save_profile
from deepum.errors import UsageError

# Looks at the ring before going to sleep, about 50 us: in lock-step the next launch comes a few
# microseconds after the last decision, and a wake-up through the eventfd would cost more than all
# the rest of the crossing.
_LOCK_STEP_SPIN = 1500
_FULL_RING_SECONDS = 0.0005
# Between looks at a ring that had events a moment ago: events wait this long at most.
_NAP_SECONDS = 0.0001
_NAPS = 200
_SOCKET_SPOKE = 2
# Members of the ring's control page that the report has as they are at the end.
_COUNTED_BY_THE_PROGRAM = ("handles_refused", "allocations_refused", "allocatable_bytes")
_CLOSING = threading.Lock()  # one session at a time writes what outlives it

_recording: set[Path] = set()
_recording_lock = threading.Lock()


def _record_path(wanted: Path, pid: int, folder: str | None) -> Path:
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


class Session:
    """Serves a program until its connection closes, its ring breaks, or `stop`."""

    def __init__(self, hello: Hello) -> None:
        """Prepares everything; nothing has been said to the program yet. Raises RefusedError; the
        descriptors are closed then.
        """
        self._hello = hello
        self._stopping = False
        self._recorder: Recorder | None = None
        self._ring: Ring | None = None
        self._planning: SessionPlanning | None = None
        try:
            self._prepare(hello)
        except BaseException:
            self._release()
            raise

    def _prepare(self, hello: Hello) -> None:
        folder = hello.environment.get("DEEPUM_STATS_DIR")
        try:
            self._values: dict[str, Value] = resolve({}, hello.environment, reader="daemon")
            self._lock_step = hello.environment.get("DEEPUM_SYNC", "").lower() in (
                "1",
                "true",
                "yes",
                "on",
            )
            self._core: Core = make_core(self._values)
            profile = self._load_profile()
            plan = self._load_plan(hello.environment)
        except UsageError as error:
            raise RefusedError(str(error)) from None
        try:
            self._ring = Ring.from_fd(hello.memory_fd)
        except (RingError, OSError, ValueError) as error:
            raise RefusedError(
                f"hello: {error}; use the libdeepum.so of this installation"
            ) from None
        self._ring.tell_wants(self._core)  # the program may ask before its first launch
        if self._values["record"] is not None:
            try:
                self._recorder = Recorder(
                    _record_path(Path(str(self._values["record"])), hello.pid, folder),
                    self._values,
                    profile,
                )
            except OSError as error:
                raise RefusedError(
                    f"record {self._values['record']}: {error.strerror}; choose another place"
                ) from None
        self._report = Report(Path(folder) if folder else None, hello.pid)
        if self._values["policy"] == PLANNED:
            self._planning = session_planning(
                self._core, self._values, hello.environment, self._report.warnings.append, plan
            )

    def _load_profile(self) -> bytes | None:
        if self._values["profile"] is None:
            return None
        path = Path(str(self._values["profile"]))
        if not os.path.lexists(path):
            return None
        return load_profile(path, self._values, self._core)

    def _load_plan(self, environment: Mapping[str, str]) -> Plan | None:
        """Raises UsageError."""
        if self._values["policy"] != PLANNED:
            return None
        if environment.get("DEEPUM_FAULTS", "off") == "off":
            raise UsageError(
                "policy planned: needs the times of launches; set DEEPUM_FAULTS=times as well"
            )
        if self._values["plan"] is None:
            return None
        path = Path(str(self._values["plan"]))
        return load_plan(path, self._values, self._core) if os.path.lexists(path) else None

    @property
    def pid(self) -> int:
        """The program's process id, as it gave it."""
        return self._hello.pid

    def stop(self) -> None:
        """Asks the session to end, from another thread."""
        self._stopping = True
        with contextlib.suppress(OSError):
            os.eventfd_write(self._hello.daemon_fd, 1)

    def serve(self, connection: socket.socket) -> str | None:
        """The loop. Returns what went wrong, None for an orderly end. Everything is released
        afterwards.
        """
        fault: str | None = None
        try:
            fault = self._loop(connection.fileno(), connection)
        except (
            Exception
        ) as error:  # whatever it is must neither end the daemon nor leave the program waiting
            fault = f"the session failed: {error!r}"
        finally:
            with _CLOSING:
                self._finish(fault)
        return fault

    def _loop(self, connection_fd: int, connection: socket.socket) -> str | None:
        ring, core = self._ring, self._core
        assert ring is not None
        daemon_fd, mover_fd = self._hello.daemon_fd, self._hello.mover_fd
        spin = _LOCK_STEP_SPIN if self._lock_step else 0
        planning = self._planning
        closed = False
        naps = 0
        while not self._stopping:
            recorder = self._recorder
            if recorder is None:
                turn = ring.turn(core)
                busy, wake, full = (
                    len(turn.events) > 0 or turn.commands > 0,
                    turn.wake_mover,
                    turn.blocked,
                )
            else:
                try:
                    busy, wake, full = recorder.turn(ring, core)
                except OSError as error:
                    self._drop_recorder(f"the event log was given up: {error.strerror}")
                    continue
            if busy:
                naps = 0
            if planning is not None and planning.turned(busy):
                ring.tell_wants(core)
            if wake:
                with contextlib.suppress(BlockingIOError):  # full: it wakes all the same
                    os.eventfd_write(mover_fd, 1)
            if full:
                if closed or (closed := _is_closed(connection)):
                    # Nobody will ever make room; the last events are learned from, and recorded.
                    ring.program_ended()
                else:
                    time.sleep(_FULL_RING_SECONDS)
            elif not busy:
                if not self._lock_step and naps < _NAPS:
                    # Asleep on the clock and not on the eventfd: else the program pays for a system
                    # call at almost every launch.
                    naps += 1
                    time.sleep(_NAP_SECONDS)
                    continue
                if ring.broken:
                    return f"the ring was refused: {ring.broken}"
                if closed:
                    return None
                sleep_ms = -1 if planning is None else planning.sleep_ms
                if ring.wait(daemon_fd, connection_fd, spin, sleep_ms) == _SOCKET_SPOKE:
                    # One more look at the ring comes first: the last events were written before it
                    # closed.
                    closed = _is_closed(connection)
                    if not closed:
                        return "the program sent a message that nobody expected"
        return "the daemon ended"

    def _drop_recorder(self, why: str) -> None:
        recorder, self._recorder = self._recorder, None
        self._report.warnings.append(why)
        if recorder is not None:
            with contextlib.suppress(OSError):
                recorder.close()
            _recording.discard(recorder.path)

    def _finish(self, fault: str | None) -> None:
        """Profile and log before the report: whoever waits for the report finds them complete."""
        if fault is not None:
            self._report.warnings.append(fault)
        counted = dict.fromkeys(_COUNTED_BY_THE_PROGRAM, 0)
        if self._ring is not None:
            self._ring.leave()
            counted = {name: getattr(self._ring, name) for name in counted}
        statistics = self._core.statistics()
        try:
            if self._values["profile"] is not None and statistics.launches:
                save_profile(Path(str(self._values["profile"])), self._core)
        except OSError as error:
            self._report.warnings.append(
                f"profile {self._values['profile']}: {error.strerror}; nothing was saved"
            )
        plans = self._finish_planning()
        recorded = self._recorder.path if self._recorder is not None else None
        if self._recorder is not None:
            try:
                self._recorder.close()
            except OSError as error:
                self._report.warnings.append(
                    f"record {recorded}: {error.strerror}; the log is incomplete"
                )
        self._release()
        self._report.finish(
            self._core,
            self._values,
            record=str(recorded) if recorded else None,
            **counted,
            **plans,
        )

    def _finish_planning(self) -> dict[str, object]:
        """What the report says of plans; the one that is kept is written."""
        if self._planning is None:
            return {}
        self._planning.close()
        plan = self._planning.plan
        try:
            if self._values["plan"] is not None and plan is not None:
                save_plan(Path(str(self._values["plan"])), plan)
        except OSError as error:
            self._report.warnings.append(
                f"plan {self._values['plan']}: {error.strerror}; nothing was saved"
            )
        return {"plans": self._planning.summary()}

    def _release(self) -> None:
        if self._planning is not None:
            self._planning.close()
        if self._recorder is not None:
            _recording.discard(self._recorder.path)
        if self._ring is not None:
            self._ring.close()
        self._hello.close()


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
