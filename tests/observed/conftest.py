"""Programs under the shim on the simulated GPU, and the FAULT events that their event logs hold."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deepum.core import EventLog, Execute, Fault, events

sys.path.insert(0, str(Path(__file__).parent))  # touching.py

SIMGPU = Path(__file__).resolve().parent.parent / "simgpu"  # sim_prelude.py and cupti_client.py


@dataclass(frozen=True)
class Ran:
    """What a run left: its output, statistics and event log."""

    out: str
    err: str
    statistics: dict[str, Any]
    log: bytes

    @property
    def events(self) -> list[Any]:
        return list(events(self.log))

    @property
    def faults(self) -> list[Fault]:
        return [event for event in self.events if isinstance(event, Fault)]

    @property
    def blocks(self) -> dict[tuple[int, int], int]:
        """(slot, UM block) to the accesses that were seen to fault there."""
        seen: dict[tuple[int, int], int] = {}
        for fault in self.faults:
            for block in range(fault.range.first, fault.range.first + fault.range.count):
                seen[fault.range.slot, block] = seen.get((fault.range.slot, block), 0) | fault.flags
        return seen

    @property
    def observed(self) -> int:
        return sum(fault.faults for fault in self.faults)

    @property
    def launches_before_last_fault(self) -> int:
        kinds = [type(event) for event in self.events]
        last = len(kinds) - kinds[::-1].index(Fault)
        return sum(kind is Execute for kind in kinds[:last])


@pytest.fixture(scope="session")
def sim_module(compile_program: Callable[..., Path]) -> Path:
    return compile_program("sim_module.c", shared=True)


@pytest.fixture
def run(
    deepum: Callable[..., subprocess.CompletedProcess[str]],
    environment: dict[str, str],
    sim_module: Path,
    tmp_path: Path,
) -> Callable[..., Ran]:
    """`deepum run` of a Python text after `from sim_prelude import *`: run("...", "--faults",
    "off"); of a command with command=[...].
    """

    def run(
        text: str = "",
        *options: object,
        command: list[object] | None = None,
        env: dict[str, str] | None = None,
    ) -> Ran:
        log, stats = tmp_path / "log", tmp_path / "stats.json"
        made = {
            "DEEPUM_FAULTS": "auto",
            "PYTHONPATH": f"{SIMGPU}:{environment['PYTHONPATH']}",
            "SIM_MODULE": str(sim_module),
        } | (env or {})
        program = command or [
            sys.executable,
            "-c",
            "from sim_prelude import *\n" + textwrap.dedent(text),
        ]
        flags = (
            "--device",
            "sim",
            "--gpu-memory",
            "64MiB",
            "--policy",
            "on-demand",
            "--record",
            log,
            "--stats",
            stats,
            *options,
        )
        done = deepum("run", *flags, "--", *program, env=made, timeout=200)
        assert done.returncode == 0, done.stderr[-4000:]
        return Ran(
            done.stdout, done.stderr, json.loads(stats.read_text()), EventLog.read(log).records
        )

    return run


@pytest.fixture
def by_hand(
    environment: dict[str, str],
    package: Path,
    sim_module: Path,
    preloading: Callable[..., dict[str, str]],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a text under the shim without the launcher, with libraries of another folder before the
    simulated GPU's.
    """

    def run(text: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
        made = environment | {
            "LD_LIBRARY_PATH": f"{folder}:{package / 'sim'}",
            "DEEPUM_FAULTS": "auto",
            "PYTHONPATH": f"{SIMGPU}:{environment['PYTHONPATH']}",
            "SIM_MODULE": str(sim_module),
            "DEEPUM_SIM_MEMORY": str(64 << 20),
            "DEEPUM_HOST_MEMORY": str(4 << 30),
            "DEEPUM_HOST_MEMORY_VIRTUAL": "1",
            "DEEPUM_DAEMON": sys.executable,
            "DEEPUM_LOG": "2",
        }
        made |= preloading(package / "lib" / "libdeepum.so") | settings
        program = "from sim_prelude import *\n" + textwrap.dedent(text)
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=made,
            text=True,
            capture_output=True,
            timeout=100,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def spy(compile_program: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """The folder of a libcupti.so.13 that tells of its calls."""

    def make(*flags: str) -> Path:
        folder = tmp_path / "spy"
        folder.mkdir()
        library = compile_program(
            "cupti_spy.c", shared=True, flags=("-Wl,-soname,libcupti.so.13", *flags)
        )
        (folder / "libcupti.so.13").symlink_to(library)
        return folder

    return make
