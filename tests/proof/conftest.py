"""Random programs, and the processes that run them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from proof_running import Runner, batches, clean_environment, compile_tools


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proof")
    group.addoption("--programs", type=int, default=2000, help="random programs to run")
    group.addoption("--proof-seed", type=int, default=0, help="others for another seed")


def _option(config: pytest.Config, name: str, default: int) -> int:
    return int(config.getoption(name, default))  # not there when all of tests/ is collected: the defaults


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "batch" in metafunc.fixturenames:
        made = batches(_option(metafunc.config, "--programs", 2000), _option(metafunc.config, "--proof-seed", 0))
        metafunc.parametrize("batch", made, ids=str)


@pytest.fixture(scope="session")
def proof_seed(pytestconfig: pytest.Config) -> int:
    """That of the command."""
    return _option(pytestconfig, "--proof-seed", 0)


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory, cuda_include: Path, package: Path) -> Iterator[Runner]:
    """One daemon serves all of it; it ends by itself soon after."""
    folder = tmp_path_factory.mktemp("proof")
    (folder / "stats").mkdir()
    with tempfile.TemporaryDirectory(prefix="deepum-p-", ignore_cleanup_errors=True) as runtime:
        base = clean_environment() | {"DEEPUM_RUNTIME_DIR": runtime, "DEEPUM_DAEMON_IDLE": "10", "DEEPUM_STATS_DIR": str(folder / "stats")}
        yield Runner(compile_tools(folder, cuda_include, package), folder, base)
        for process in _holders(Path(runtime) / "daemon.lock"):
            os.kill(process, 15)


def _holders(lock: Path) -> list[int]:
    """Processes that hold the daemon's lock open."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and any(fd.readlink() == lock for fd in (process / "fd").iterdir()):
                found.append(int(process.name))
        except OSError:
            continue
    return found
