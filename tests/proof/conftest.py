"""Random programs, and the processes that run them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from proof_batches import batches
from proof_running import Runner, opened


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proof")
    group.addoption("--programs", type=int, default=2000, help="random programs to run")
    group.addoption("--proof-seed", type=int, default=0, help="others for another seed")


def _option(config: pytest.Config, name: str, default: int) -> int:
    # Not there when all of tests/ is collected: the defaults.
    return int(config.getoption(name, default))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "batch" in metafunc.fixturenames:
        made = batches(
            _option(metafunc.config, "--programs", 2000),
            _option(metafunc.config, "--proof-seed", 0),
        )
        metafunc.parametrize("batch", made, ids=str)


@pytest.fixture(scope="session")
def proof_seed(pytestconfig: pytest.Config) -> int:
    """That of the command."""
    return _option(pytestconfig, "--proof-seed", 0)


@pytest.fixture(scope="session")
def runner(
    tmp_path_factory: pytest.TempPathFactory, cuda_include: Path, package: Path
) -> Iterator[Runner]:
    """One daemon serves all of it."""
    with opened(tmp_path_factory.mktemp("proof"), cuda_include, package) as made:
        yield made
