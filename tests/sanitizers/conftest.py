"""Programs for sanitizers to look at (scripts/sanitize). Without one they run as well, and have to
compute what is right.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def sim_module(compile_program: Callable[..., Path]) -> Path:
    return compile_program("sim_module.c", shared=True)


@pytest.fixture(scope="session")
def interpreter(
    tmp_path_factory: pytest.TempPathFactory, preloading: Callable[..., dict[str, str]]
) -> Path:
    """A Python for the daemon, which the shim starts without any preload."""
    path = tmp_path_factory.mktemp("interpreter") / "python"
    preload = "".join(f"{name}={shlex.quote(value)} " for name, value in preloading().items())
    path.write_text(
        f'#!/bin/sh\nASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" {preload}exec '
        f'{shlex.quote(sys.executable)} "$@"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def run(
    environment: dict[str, str],
    package: Path,
    preloading: Callable[..., dict[str, str]],
    interpreter: Path,
) -> Run:
    """Runs a C program on a simulated card of 64 MiB; with shim=True under the shim, which starts a
    daemon. With leaks=True a leak is a finding. Not with forks: a child has the memory of threads
    that it has not.
    """

    def run(
        *command: object, shim: bool = False, leaks: bool = False, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        made = environment | {
            "LD_LIBRARY_PATH": str(package / "sim"),
            "DEEPUM_SIM_MEMORY": str(64 << 20),
        }
        made["ASAN_OPTIONS"] = made.get("ASAN_OPTIONS", "") + f":detect_leaks={int(leaks)}"
        if shim:
            made |= preloading(package / "lib" / "libdeepum.so") | {
                "DEEPUM_DAEMON": str(interpreter)
            }
        return subprocess.run(
            [str(part) for part in command],
            env=made | (env or {}),
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )

    return run
