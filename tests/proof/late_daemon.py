"""A daemon whose commands come late: `DEEPUM_PROOF_LATE` launches of the program after they were
decided, at most. Started as deepum's.

With `DEEPUM_PROOF_GONE` it loses a program after so many launches.

The core is the real one; what it decides, and in which order, is as ever.
"""

from __future__ import annotations

import random
import struct
from collections import deque
from pathlib import Path

from deepum.core import Core, Ring
from deepum.core.records import COMMAND_BYTES
from deepum.daemon import __main__, server, session
from deepum.daemon.hello import Hello
from deepum.daemon.recorder import Recorder
from deepum.daemon.session import Session

_EXECUTE = 6  # DEEPUM_EVENT_EXECUTE


class _GoneError(Exception):
    """The session ends here, whatever is under way."""


class _Late(Recorder):
    """Stands where the event log is written: each event and each command passes here."""

    def __init__(self, launches: int, gone: int) -> None:
        self.path = Path()
        self._most = launches
        self._random = random.Random(launches)
        self._launches = 0
        self._gone = gone
        self._kept: deque[tuple[int, bytes]] = deque()  # by the launch at which they go
        self._due = b""
        self._last = 0
        self._answered = 0

    def turn(self, ring: Ring, core: Core) -> tuple[bool, bool, bool]:
        records = b"" if self._due else ring.take()
        at = 0
        while at < len(records):
            words, kind = struct.unpack_from("<HB", records, at)
            self._last = core.process(records[at : at + 8 * words])
            at += 8 * words
            self._launches += kind == _EXECUTE
            if self._gone and self._launches == self._gone:
                raise _GoneError
            if given := core.take_command_bytes():
                when = self._launches + self._random.randint(0, self._most)
                self._kept.append((max([when, *(due for due, _ in self._kept)]), given))
            while self._kept and self._kept[0][0] <= self._launches:
                self._due += self._kept.popleft()[1]
        had = bool(records or self._due)
        self._due = self._due[ring.write(self._due) * COMMAND_BYTES :]
        if not self._due:
            self._answered = self._last
        return had, had and ring.publish_decided(self._answered), bool(self._due)

    @property
    def failure(self) -> None:
        """There is no log that could fail."""

    def close(self) -> None:
        return


class _LateSession(Session):
    def _prepare(self, hello: Hello) -> None:
        super()._prepare(hello)
        launches, gone = (
            int(hello.environment.get(name, "0"))
            for name in ("DEEPUM_PROOF_LATE", "DEEPUM_PROOF_GONE")
        )
        if (launches or gone) and self._recorder is None:
            self._recorder = _Late(launches, gone)


if __name__ == "__main__":
    vars(server)["Session"] = _LateSession
    vars(session)["_LOCK_STEP_SPIN"] = 0  # Several sessions share few cores here.
    __main__.main()
