from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# daemon_side.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "runtime")]

from fault_tools import Training, daemon_of  # noqa: E402


@pytest.fixture(scope="session")
def faulty_driver(
    tmp_path_factory: pytest.TempPathFactory, compile_program: Callable[..., Path], package: Path
) -> Path:
    """A folder with a libcuda.so.1 that fails on demand, and the simulated driver behind it."""
    folder = tmp_path_factory.mktemp("driver")
    behind, driver = folder / "libcuda-behind.so", folder / "libcuda.so.1"
    # Linked with an empty library of that name, or the real one's own name would be asked for:
    # libcuda.so.1 again.
    empty = [
        "gcc",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        os.devnull,
        "-Wl,-soname,libcuda-behind.so",
        "-o",
        str(behind),
    ]
    subprocess.run(empty, check=True)
    flags = (
        "-Wl,-soname,libcuda.so.1",
        f"-L{folder}",
        "-Wl,--no-as-needed",
        "-l:libcuda-behind.so",
    )
    driver.symlink_to(compile_program("fault_driver.c", shared=True, flags=flags))
    behind.unlink()
    behind.symlink_to(package / "sim" / "libcuda.so.1")
    return folder


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    """Where sessions report to."""
    folder = tmp_path / "stats"
    folder.mkdir()
    return folder


@pytest.fixture
def training(
    environment: dict[str, str],
    package: Path,
    faulty_driver: Path,
    compile_program: Callable[..., Path],
    tmp_path: Path,
    stats: Path,
) -> Training:
    """On a card of 28 MiB, two thirds of what 5 layers take; in lock-step, with discards."""
    kernels = compile_program("fault_kernels.c", shared=True)
    program = compile_program("fault_training.c", link_cuda=True)
    settings = {
        "LD_PRELOAD": str(package / "lib" / "libdeepum.so"),
        # For CUPTI; libcuda is the first one.
        "LD_LIBRARY_PATH": f"{faulty_driver}:{package / 'sim'}",
        "DEEPUM_DAEMON": sys.executable,
        "DEEPUM_SIM_MEMORY": str(28 << 20),
        "DEEPUM_HOST_MEMORY": "8GiB",
        "DEEPUM_SYNC": "1",
        "DEEPUM_INVALIDATION": "1",
        "DEEPUM_FAULTS": "off",
        "DEEPUM_STATS_DIR": str(stats),
        "FAULT_TOLD": str(tmp_path / "told"),
    }
    return Training([str(program), str(kernels)], environment | settings, tmp_path / "told")


@pytest.fixture
def daemon(environment: dict[str, str], runtime_dir: Path) -> Iterator[int]:
    """The process of a daemon that is there before the program."""
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "deepum", "daemon"],
        env=environment,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    daemon_of(runtime_dir)
    yield started.pid
    started.kill()
    started.wait(20)
