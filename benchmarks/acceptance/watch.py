"""How much of the card is in use at most: `python -m acceptance.watch ORDINAL`, a process beside
the others.

For each line of its input it prints what is in use and the most since the line before: bytes, of
all processes, managed memory on the card included. `Watch` is the other end.
"""

from __future__ import annotations

import select
import subprocess
import sys
import weakref
from typing import Any

from acceptance.place import Place
from deepum.doctor.driver import Cuda

_SECONDS = 0.01


class Watch:
    """Runs one. On the simulated GPU, whose every process has a card of its own, there is nothing
    to see.
    """

    def __init__(self, place: Place) -> None:
        self._process: subprocess.Popen[str] | None = None
        if not place.simulated:
            command = [sys.executable, "-P", "-m", "acceptance.watch", str(place.ordinal)]
            pipes: dict[str, Any] = {
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.DEVNULL,
            }
            self._process = subprocess.Popen(command, env=place.environment(), text=True, **pipes)
            assert self._process.stdin is not None
            weakref.finalize(self, self._process.stdin.close)  # the process ends with its input

    def take(self) -> tuple[int, int] | None:
        """(in use now, the most since the last time); None where nobody tells."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write("\n")
            process.stdin.flush()
            now, most = process.stdout.readline().split()
        except (OSError, ValueError):
            self._process = None
            return None
        return int(now), int(most)


def main() -> None:
    cuda = Cuda(int(sys.argv[1]))
    total = int(cuda("cuMemGetInfo")[1])
    most = 0
    while True:
        now = total - cuda.free_bytes()
        most = max(most, now)
        if select.select([sys.stdin], [], [], _SECONDS)[0]:
            if not sys.stdin.readline():
                return
            print(now, most, flush=True)
            most = now


if __name__ == "__main__":
    main()
