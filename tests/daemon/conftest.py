"""A daemon to talk to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "top"))  # sources

from running import socket_of, wait_until


@pytest.fixture
def daemon(environment: dict[str, str], runtime_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """`deepum daemon` in the foreground, listening."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "deepum", "daemon"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(socket_of(runtime_dir).exists), "the daemon does not listen"
    yield process
    process.terminate()
    process.wait(20)
    assert process.stderr is not None
    process.stderr.close()
