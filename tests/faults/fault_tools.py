"""Programs that run under the shim with faults injected, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from running import holders, lock_of, socket_of, wait_until

RIGHT = re.compile(r"all \d+ layers are right\n\Z")


@dataclass(frozen=True)
class Ran:
    """A program that ended."""

    code: int
    out: str
    err: str
    calls: dict[str, tuple[int, int]]  # of the driver, by name: made, failed; "steps": all of them

    @property
    def right(self) -> bool:
        """It ended well, and found every number as it should be."""
        return self.code == 0 and RIGHT.search(self.out) is not None

    def failed(self, *names: str) -> int:
        """How many calls were failed: those of these names, or all."""
        return sum(
            failed for name, (_, failed) in self.calls.items() if name in (names or self.calls)
        )


@dataclass(frozen=True)
class Training:
    """tests/programs/fault_training.c on the simulated GPU, with a driver that fails on demand
    between the shim and it.
    """

    command: list[str]
    environment: dict[str, str]
    call_counts: Path

    def start(self, *arguments: object, **settings: object) -> subprocess.Popen[str]:
        """training.start(8, 2, 4): rounds, streams, layers, what is made anew. Settings are
        environment variables.
        """
        self.call_counts.unlink(missing_ok=True)
        return subprocess.Popen(
            [*self.command, *map(str, arguments)],
            env=self.environment | {name: str(value) for name, value in settings.items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str], timeout: float = 60) -> Ran:
        """Waits for its end."""
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        lines = self.call_counts.read_text().splitlines() if self.call_counts.exists() else []
        return Ran(
            process.returncode,
            out,
            err,
            {name: (int(made), int(failed)) for name, made, failed in map(str.split, lines)},
        )

    def held_at(self, process: subprocess.Popen[str], round_: int) -> None:
        """Waits until the program waits after this round: one of FAULT_HOLD."""
        assert process.stdout is not None
        assert any(line == f"round {round_}\n" for line in iter(process.stdout.readline, "")), (
            "it ended before"
        )

    def go_on(self, process: subprocess.Popen[str]) -> None:
        """Lets a held program run."""
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    def run(self, *arguments: object, **settings: object) -> Ran:
        """From start to end."""
        return self.finish(self.start(*arguments, **settings))


def stop(pid: int) -> None:
    """SIGSTOP; it has stopped when this returns."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    assert wait_until(
        lambda: all(
            (task / "stat").read_text().rpartition(")")[2].split()[0] == "T"
            for task in tasks.iterdir()
        )
    )


def wait_until_idle(pid: int) -> None:
    """Until the process has used next to no processor time for longer than the mover sleeps: it may
    have something to tell then.
    """

    def used() -> int:
        return sum(
            map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        )

    def idle() -> bool:
        before = used()
        time.sleep(1.5)
        # Ticks of 10 ms: threads that look around, on a machine that is busy otherwise.
        return used() - before <= 3

    assert wait_until(idle, 60)


def daemon_of(folder: Path) -> int:
    """The daemon that serves the folder, once it listens: it has opened all that it keeps open."""
    assert wait_until(socket_of(folder).exists), "no daemon listens"
    assert wait_until(lambda: holders(lock_of(folder))), "no daemon"
    return holders(lock_of(folder))[0]


def sessions(folder: Path) -> list[dict[str, Any]]:
    """What the sessions of a statistics folder reported, once all of them are closed."""
    assert wait_until(lambda: not list(folder.glob("*.open"))), list(folder.iterdir())
    return [json.loads(path.read_text()) for path in sorted(folder.glob("session-*.json"))]


def holdings(pid: int) -> dict[str, list[str]]:
    """What the daemon holds of its programs: descriptors, and mapped memory that may be shared."""
    descriptors = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            descriptors.append(re.sub(r"\[\d+\]", "", os.readlink(fd)))  # noqa: PTH115 - a link to no file
        except OSError:
            continue
    maps = [
        line.split(maxsplit=5)[5].strip()
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
        if "deepum (deleted)" in line
    ]
    return {"descriptors": sorted(descriptors), "memory": maps}


def things(folder: Path) -> set[str]:
    """Of the runtime folder and of shared memory. The ledger of managed memory stays by design: its
    slots are given out anew.
    """
    own = {path.name for path in folder.iterdir() if not path.name.startswith("managed-")}
    return own | {str(path) for path in Path("/dev/shm").glob("deepum*")}


@contextmanager
def nothing_left_behind(folder: Path, daemon: int) -> Iterator[None]:
    """Within it the daemon lives on, and afterwards it holds no more than before and there are no
    more files.
    """
    held, there = holdings(daemon), things(folder)
    yield
    assert Path(f"/proc/{daemon}").exists(), "the daemon ended"
    assert wait_until(lambda: holdings(daemon) == held), (held, holdings(daemon))
    assert wait_until(lambda: things(folder) == there), (there, things(folder))
