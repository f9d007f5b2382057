"""The daemon as a program starts it, on demand (`python FILE`, `python -m deepum.daemon`). It
leaves the program's process tree at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if not __package__:  # started as a file: of this installation, whatever else is called deepum
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def _leave_the_program() -> None:
    """Becomes a process of its own: nobody's child to wait for, no terminal, none of the program's
    streams held open.
    """
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, 4096)


def main() -> None:
    """Serves until idle. What it has to say goes to daemon.log in the runtime folder."""
    _leave_the_program()
    from deepum.daemon.run import on_demand

    sys.exit(on_demand(os.environ))


if __name__ == "__main__":
    main()
