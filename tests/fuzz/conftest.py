from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "daemon")]  # fake_program

from fake_program import FakeProgram  # noqa: E402
from running import socket_of, wait_until  # noqa: E402


class Daemon:
    """`deepum daemon` in a process of its own, with few descriptors on wish."""

    def __init__(
        self, folder: Path, environment: dict[str, str], descriptors: int | None = None
    ) -> None:
        self.folder = folder
        limit = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"] if descriptors else []
        self._errors = (folder / "stderr").open("w+")
        command = [*limit, sys.executable, "-P", "-m", "deepum", "daemon"]
        self.process = subprocess.Popen(command, env=environment, stderr=self._errors, cwd=folder)
        assert wait_until(socket_of(folder).exists), "the daemon does not listen"

    def descriptors(self) -> int:
        """How many it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def maps(self) -> int:
        """How many memories of programs it has mapped."""
        return Path(f"/proc/{self.process.pid}/maps").read_text().count("(deleted)")

    def holding(self) -> tuple[int, int]:
        """Descriptors and maps, once no session before is being ended any longer."""
        held = [(self.descriptors(), self.maps())]
        while len(held) < 4 or len(set(held[-4:])) > 1:
            time.sleep(0.05)
            held.append((self.descriptors(), self.maps()))
        return held[-1]

    def messages(self) -> list[str]:
        """Its lines so far."""
        return (self.folder / "stderr").read_text().splitlines()

    def serves(self) -> None:
        """A decent program gets what it should."""
        assert self.process.poll() is None, self.messages()[-5:]
        program = FakeProgram(self.folder, {"DEEPUM_LAUNCH_QUEUE": "0"}, pid=1)
        rounds = program.train(6)
        assert program.ahead(rounds[-1])
        program.close()

    def check(self, before: tuple[int, int]) -> None:
        """It lives, serves, holds nothing, and said one line at a time."""
        self.serves()
        assert wait_until(lambda: (self.descriptors(), self.maps()) == before), (
            before,
            self.descriptors(),
            self.maps(),
        )
        odd = [
            line
            for line in self.messages()
            if not re.match(r"deepum: (serving|session of process|refused: \w)", line)
        ]
        assert not odd, odd[:20]

    def close(self) -> None:
        """SIGTERM, and in order."""
        self.process.terminate()
        try:
            assert self.process.wait(20) == 0
        finally:
            self.process.kill()
            self.process.wait()
            self._errors.close()


@pytest.fixture
def start_daemon(environment: dict[str, str], runtime_dir: Path) -> Iterator[Callable[..., Daemon]]:
    started: list[Daemon] = []

    def start(descriptors: int | None = None) -> Daemon:
        started.append(Daemon(runtime_dir, environment, descriptors))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def daemon(start_daemon: Callable[..., Daemon]) -> Daemon:
    """One that is checked after the test: alive, serving, and holding what it held before."""
    return start_daemon()
