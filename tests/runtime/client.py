"""native/runtime as snippets see it that the tests run in a process of their own: `from client
import *`.
"""

from __future__ import annotations

import ctypes as c
import json
import os
import threading
import time
from collections.abc import Callable

_library = c.CDLL(os.environ["RUNTIME_HARNESS"])
_library.h_execute.restype = c.c_uint64
_library.h_emit_execute.restype = c.c_uint64
_library.h_calls.restype = c.c_size_t
_library.h_queries.restype = c.c_long
MiB = 1 << 20
BASE = 1 << 32  # of the first allocation of a test; in calls, 4096 MiB


def enter(device: int = 0) -> bool:
    return bool(_library.h_enter(device))


def execute(
    stream: int = 0,
    hash: int = 7,
    refused: bool = False,
    handle: int | None = None,
    blocks: int = 0,
) -> int:
    return int(
        _library.h_execute(
            stream, c.c_uint64(hash), int(refused), stream if handle is None else handle, blocks
        )
    )


def emit_execute(stream: int, hash: int, ranges: int = 0) -> int:
    return int(_library.h_emit_execute(stream, c.c_uint64(hash), ranges))


def synchronise(stream: int = 63) -> None:
    _library.h_synchronise(stream)


def allocate(mebibytes: int, at: int = 0) -> None:
    _library.h_allocate(c.c_uint64(BASE + at * MiB), c.c_uint64(mebibytes * MiB))


def block(mebibytes: int, at: int = 0) -> None:
    _library.h_block(c.c_uint64(BASE + at * MiB), c.c_uint64(mebibytes * MiB))


def unblock(mebibytes: int, at: int = 0) -> None:
    _library.h_unblock(c.c_uint64(BASE + at * MiB), c.c_uint64(mebibytes * MiB))


def free(at: int = 0) -> None:
    _library.h_free(c.c_uint64(BASE + at * MiB))


def call(name: str, *arguments: int) -> int:
    return int(getattr(_library, "h_" + name)(*arguments))


def set_context(value: int) -> None:
    _library.h_set_context(c.c_uint64(value))


def queries() -> int:
    return int(_library.h_queries())


def threads(count: int, launches: int) -> None:
    _library.h_threads(count, launches)


def calls() -> list[str]:
    """What the driver was asked since the last time."""
    buffer = c.create_string_buffer(1 << 20)
    length = _library.h_calls(buffer, len(buffer))
    return buffer.raw[:length].decode().splitlines()


def wait_calls(enough: Callable[[list[str]], bool], timeout: float = 10) -> list[str]:
    """Everything the driver is asked until it is enough."""
    so_far: list[str] = []
    until = time.monotonic() + timeout
    while not enough(so_far := so_far + calls()):
        assert time.monotonic() < until, so_far
        time.sleep(0.002)
    return so_far


class Meanwhile:
    """Opens gates of the first epoch from another thread: stream 1's again and again, so that none
    are taken for stuck, and in the end stream 0's up to the sequence `opens`; 0: never.
    """

    def __init__(self, opens: int = 0) -> None:
        self.opened = False
        self._opens, self._left = opens, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        value = 0
        while not self._left.is_set() and not (self._opens and value == 20):
            value += 1
            call("write_word", 1, value)
            time.sleep(0.005)
        if self._opens:
            self.opened = True
            call("write_word", 0, self._opens)

    def leave(self) -> None:
        self._left.set()
        self._thread.join()


def settings() -> list[int]:
    out = (c.c_uint64 * 16)()
    return list(out[: _library.h_settings(out)])


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)
