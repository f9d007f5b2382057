"""A client of the daemon's control channel (deepum/daemon/control.py)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any

from deepum.daemon.control import VERSION
from deepum.daemon.figures import DaemonFigures, SessionFigures, read
from deepum.daemon.program import peer_of
from deepum.daemon.steering import Changes
from deepum.errors import EXIT_FINDINGS, DeepumError
from deepum.paths import daemon_files, runtime_folder

_ANSWER_SECONDS = 30.0  # a daemon with many busy sessions asks one after the other
_PIECE_BYTES = 65536


class NoDaemonError(DeepumError):
    """Nobody serves the runtime folder for this installation."""


class Channel:
    """A connection to the daemon of this user and installation. Use it in a `with` statement."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Raises NoDaemonError, DeepumError."""
        path = daemon_files(runtime_folder(environment)).socket
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._connection.settimeout(_ANSWER_SECONDS)
            self._connection.connect(str(path))
            if peer_of(self._connection)[1] != os.getuid():
                raise DeepumError(
                    f"{path}: belongs to another user; set DEEPUM_RUNTIME_DIR to a folder of your "
                    f"own"
                )
        except (FileNotFoundError, ConnectionRefusedError):
            self.close()
            raise NoDaemonError(
                "daemon: none runs; the first program under `deepum run` starts it", EXIT_FINDINGS
            ) from None
        except OSError as error:
            self.close()
            raise DeepumError(
                f"{path}: {error.strerror or error}; set DEEPUM_RUNTIME_DIR as the program has it"
            ) from None
        except DeepumError:
            self.close()
            raise

    def __enter__(self) -> Channel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves. Safe to call twice."""
        self._connection.close()

    def sessions(self) -> list[SessionFigures]:
        """Of all programs that are served now. Raises DeepumError, as all of these do."""
        listing = self._ask("list").get("sessions")
        try:
            return [read(SessionFigures, each) for each in listing or []]
        except (ValueError, TypeError) as error:
            raise self._strange(error) from None

    def daemon(self) -> DaemonFigures:
        """Of the daemon itself."""
        try:
            return read(DaemonFigures, self._ask("daemon").get("daemon") or {})
        except (ValueError, TypeError) as error:
            raise self._strange(error) from None

    def set(self, session: int, changes: Changes) -> None:
        """Changes settings of a session."""
        given = {name: value for name, value in asdict(changes).items() if value is not None}
        self._ask("set", session=session, **given)

    def end(self, session: int, *, detach: bool = False) -> None:
        """Asks the session's program to end; detach: it goes on without the daemon."""
        self._ask("end", session=session, detach=detach)

    def stop(self) -> None:
        """Ends the daemon in order; programs go on without."""
        self._ask("stop")

    def _ask(self, verb: str, **more: Any) -> dict[str, Any]:
        try:
            self._connection.send(json.dumps({"version": VERSION, "ask": verb, **more}).encode())
            answer = json.loads(self._line())
        except (ConnectionError, EOFError):
            raise NoDaemonError("daemon: it ended; ask again once a program runs") from None
        except TimeoutError:
            raise DeepumError(
                f"daemon: did not answer within {_ANSWER_SECONDS:g} s; look at daemon.log in "
                f"its folder"
            ) from None
        except (OSError, ValueError) as error:
            raise self._strange(error) from None
        if not isinstance(answer, dict):
            raise self._strange("no object")
        if "error" in answer:
            raise DeepumError(str(answer["error"]))
        return answer

    def _line(self) -> bytes:
        """Raises EOFError."""
        pieces = [b""]
        while not pieces[-1].endswith(b"\n"):
            if not (piece := self._connection.recv(_PIECE_BYTES)):
                raise EOFError
            pieces.append(piece)
        return b"".join(pieces)

    def _strange(self, what: object) -> DeepumError:
        return DeepumError(
            f"daemon: its answer is not understood: {what}; use the deepum of its installation"
        )
