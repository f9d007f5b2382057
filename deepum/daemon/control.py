"""The second kind of client of the daemon's socket, beside programs: it asks for figures and
changes sessions. One JSON object a line each way (docs/daemon.md, The control channel).
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from deepum.daemon.figures import DaemonFigures, SessionFigures
from deepum.daemon.inbox import SessionOverError
from deepum.daemon.program import ServedProgram
from deepum.daemon.steering import Changes
from deepum.errors import DeepumError, UsageError

VERSION = 1  # rises when a request or a member changes its meaning or goes
MOST_REQUEST_BYTES = 65536
_PIECE_BYTES = 32768  # of an answer: a message of a Unix socket is limited
_SILENT_SECONDS = 120.0  # a client that asks nothing for so long is left
_DETACHED = "it was ended by `deepum stop --detach`"


class Steered(Protocol):
    """What the channel needs of a session (`deepum.daemon.session.Session`)."""

    @property
    def number(self) -> int: ...
    @property
    def program(self) -> ServedProgram: ...
    def steer(self, changes: Changes) -> None: ...
    def stop(self, why: str) -> None: ...


class Serving(Protocol):
    """What it needs of the daemon (`deepum.daemon.server.Server`)."""

    def sessions(self) -> Sequence[Steered]: ...
    def session_figures(self) -> list[SessionFigures]: ...
    def figures(self) -> DaemonFigures: ...
    def stop(self) -> None: ...


def is_control(connection: socket.socket) -> bool:
    """Whether the first message of a connection is a request, and no program's hello: it stays
    there. Raises OSError.
    """
    return connection.recv(1, socket.MSG_PEEK) == b"{"


def send_line(connection: socket.socket, document: Mapping[str, Any]) -> None:
    """An object as a line, in as many messages as it needs. Raises OSError."""
    line = json.dumps(document).encode() + b"\n"
    for at in range(0, len(line), _PIECE_BYTES):
        connection.sendall(line[at : at + _PIECE_BYTES])


class Control:
    """Answers one client after the other's request; whatever is asked, nobody else notices."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._verbs: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "list": self._list,
            "daemon": self._daemon,
            "set": self._set,
            "end": self._end,
            "stop": self._stop,
        }

    def serve(self, connection: socket.socket) -> None:
        """Until the client leaves, or is silent for two minutes."""
        connection.settimeout(_SILENT_SECONDS)
        with contextlib.suppress(OSError):
            while request := connection.recv(MOST_REQUEST_BYTES + 1):
                answer = self.answer(request)
                send_line(connection, {"version": VERSION, **answer})
                if answer.get("ends"):  # only now, so that the client knows
                    self._serving.stop()

    def answer(self, request: bytes) -> dict[str, Any]:
        """What the request is answered with, `error` where it cannot be done."""
        try:
            document = _object(request)
            verb = document.get("ask")
            if not isinstance(verb, str) or verb not in self._verbs:
                raise UsageError(
                    f"ask: {_short(verb)} is no request; ask one of {', '.join(self._verbs)}"
                )
            return self._verbs[verb](document)
        except DeepumError as error:
            return {"error": " ".join(str(error).split())}
        except Exception as error:  # a mistake of ours is no reason to leave the client alone
            return {"error": f"control: {' '.join(repr(error).split())}; report this"}

    def _list(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"sessions": [asdict(each) for each in self._serving.session_figures()]}

    def _daemon(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"daemon": asdict(self._serving.figures())}

    def _set(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session, changes = self._session(request), Changes.of(request)
        try:
            session.steer(changes)
        except SessionOverError:
            raise _no_session(session.number) from None
        except TimeoutError:
            raise DeepumError(
                f"session {session.number}: is busy; nothing was changed, try again"
            ) from None
        return {}

    def _end(self, request: Mapping[str, Any]) -> dict[str, Any]:
        session, detach = self._session(request), request.get("detach", False)
        if not isinstance(detach, bool):
            raise UsageError(f"detach: {_short(detach)} is neither true nor false; give one")
        if detach:
            session.stop(_DETACHED)
        elif not session.program.terminate():
            raise DeepumError(
                f"session {session.number}: its process {session.program.pid} cannot be asked to "
                f"end; end it by hand, or give `detach`"
            )
        return {}

    def _stop(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"ends": True}

    def _session(self, request: Mapping[str, Any]) -> Steered:
        number = request.get("session")
        for session in self._serving.sessions():
            if number == session.number and not isinstance(number, bool):
                return session
        raise _no_session(number)


def _no_session(number: object) -> UsageError:
    return UsageError(f"session: there is no {_short(number)}; `list` names those that there are")


def _short(value: object) -> str:
    return repr(value)[:60]


def _object(request: bytes) -> dict[str, Any]:
    """Raises UsageError."""
    if len(request) > MOST_REQUEST_BYTES:
        raise UsageError(f"request: is longer than {MOST_REQUEST_BYTES} bytes; ask for less")
    try:
        document = json.loads(request)
    except (ValueError, RecursionError):
        raise UsageError("request: is no JSON; send one object a line") from None
    if not isinstance(document, dict):
        raise UsageError("request: is no object; send one object a line")
    if document.get("version") != VERSION:
        raise UsageError(
            f"version: the daemon speaks {VERSION}, and not {_short(document.get('version'))}; "
            f"use the deepum of its installation"
        )
    return document
