"""The first message of a program, and the answer (native/wire/ring.h). Nothing in it is trusted."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from dataclasses import dataclass

from deepum._core import lib

_HELLO = struct.Struct("<8sIIII")  # magic, version, settings_bytes, pid, reserved0
_WELCOME = struct.Struct("<8sII")  # magic, version, text_bytes
_VERSION = int(lib.DEEPUM_WIRE_VERSION)
_MOST_SETTINGS_BYTES = 65536
_DESCRIPTORS = 3


class RefusedError(Exception):
    """The program's session cannot be served; the text goes back to it."""


@dataclass
class Hello:
    """What a program brought. The descriptors are open and ours."""

    pid: int
    environment: dict[str, str]
    memory_fd: int
    daemon_fd: int  # eventfd: wakes us
    mover_fd: int  # eventfd: wakes the program's mover

    def close(self) -> None:
        """Closes the descriptors; safe to call twice."""
        for name in ("memory_fd", "daemon_fd", "mover_fd"):
            if (fd := getattr(self, name)) >= 0:
                setattr(self, name, -1)
                with contextlib.suppress(OSError):
                    os.close(fd)


def _is_eventfd(fd: int) -> bool:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}").startswith("anon_inode:[eventfd")  # noqa: PTH115 - a link to no file
    return False


def receive(connection: socket.socket) -> Hello | None:
    """Reads the first message; None when the program left without one. Raises RefusedError, OSError
    (a time-out).
    """
    message, descriptors, flags, _ = socket.recv_fds(
        connection, _HELLO.size + _MOST_SETTINGS_BYTES + 1, 16
    )
    try:
        hello = _checked(message, descriptors, flags)
    except RefusedError:
        for fd in descriptors:
            os.close(fd)
        if not message and not descriptors:
            return None
        raise
    return hello


def _checked(message: bytes, descriptors: list[int], flags: int) -> Hello:
    if flags & socket.MSG_CTRUNC:
        raise RefusedError(
            "hello: not all of its descriptors arrived; raise the daemon's limit of open "
            "files (ulimit -n)"
        )
    if flags & socket.MSG_TRUNC or len(message) < _HELLO.size:
        raise RefusedError(
            "hello: is not a whole message; use the libdeepum.so of this installation"
        )
    magic, version, settings_bytes, pid, _ = _HELLO.unpack_from(message)
    if magic != b"DEEPUMHI":
        raise RefusedError(
            "hello: is not one of deepum's; use the libdeepum.so of this installation"
        )
    if version != _VERSION:
        raise RefusedError(
            f"hello: the program speaks version {version}, the daemon {_VERSION}; end the "
            f"daemon, or use one installation for both"
        )
    if len(descriptors) != _DESCRIPTORS:
        raise RefusedError(
            f"hello: came with {len(descriptors)} descriptors instead of {_DESCRIPTORS}; use "
            f"the libdeepum.so of this installation"
        )
    if settings_bytes > _MOST_SETTINGS_BYTES or len(message) != _HELLO.size + settings_bytes:
        raise RefusedError(
            "hello: its settings are cut off; unset the DEEPUM_* variables that are not needed"
        )
    if not _is_eventfd(descriptors[1]) or not _is_eventfd(descriptors[2]):
        raise RefusedError(
            "hello: its descriptors are not eventfds; use the libdeepum.so of this installation"
        )
    for eventfd in descriptors[1:]:
        os.set_blocking(eventfd, False)  # nothing that the program does with them may make us wait
    environment = {}
    for entry in message[_HELLO.size :].split(b"\0"):
        name, equals, value = entry.decode("utf-8", errors="surrogateescape").partition("=")
        if equals and name.startswith("DEEPUM_"):
            environment[name] = value
    return Hello(pid, environment, *descriptors)


def answer(connection: socket.socket, refusal: str | None = None) -> None:
    """Welcomes the program, or refuses it with a line of text. A program that is gone already is no
    error.
    """
    text = "" if refusal is None else " ".join(refusal.split())
    encoded = text.encode("utf-8", errors="replace")[:900]
    magic = b"DEEPUMOK" if refusal is None else b"DEEPUMNO"
    with contextlib.suppress(OSError):
        connection.send(_WELCOME.pack(magic, _VERSION, len(encoded)) + encoded)
