"""Programs that run on the simulated GPU by themselves: no shim, no launcher."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for the modules beside the tests


@dataclass
class Ran:
    """What a program left behind. statistics: the simulated driver's JSON, by process."""

    code: int
    out: str
    err: str
    statistics: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="session")
def sim(package: Path) -> Path:
    """The folder of the libraries under test; DEEPUM_SIM_LIBRARIES names another."""
    folder = Path(os.environ.get("DEEPUM_SIM_LIBRARIES", package / "sim"))
    assert (folder / "libcuda.so.1").exists(), f"{folder}/libcuda.so.1 is not built: scripts/build"
    return folder


@pytest.fixture(scope="session")
def sim_module(compile_program: Callable[..., Path]) -> Path:
    return compile_program("sim_module.c", shared=True)


@pytest.fixture
def run_sim(
    sim: Path, sim_module: Path, environment: dict[str, str], tmp_path: Path
) -> Callable[..., Ran]:
    """Runs a command on the simulated GPU; a non-zero exit fails the test unless fails=True."""

    def run(
        *command: object,
        env: dict[str, str] | None = None,
        fails: bool = False,
        timeout: float = 60,
    ) -> Ran:
        statistics = tmp_path / "statistics"
        statistics.mkdir(exist_ok=True)
        made = environment | {
            "LD_LIBRARY_PATH": str(sim),
            "SIM_MODULE": str(sim_module),
            "DEEPUM_STATS_DIR": str(statistics),
            "PYTHONPATH": f"{HERE}:{environment['PYTHONPATH']}",
        }
        done = subprocess.run(
            [str(part) for part in command],
            env=made | (env or {}),
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
            cwd=tmp_path,
        )
        assert fails or done.returncode == 0, done.stdout + done.stderr
        return Ran(
            done.returncode,
            done.stdout,
            done.stderr,
            [json.loads(path.read_text()) for path in sorted(statistics.glob("sim-*.json"))],
        )

    return run


@pytest.fixture
def script(run_sim: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs Python text after `from sim_prelude import *`, with a context current unless
    bare=True.
    """

    def run(text: str, *, bare: bool = False, **options: Any) -> Ran:
        prelude = "from sim_prelude import *\n" + ("" if bare else "ctx = context()\n")
        return run_sim(sys.executable, "-c", prelude + textwrap.dedent(text), **options)

    return run


@pytest.fixture(scope="session")
def kernels_probe(
    compile_program: Callable[..., Path],
    tmp_path_factory: pytest.TempPathFactory,
    sanitizer_flags: tuple[str, ...],
) -> Path:
    """native/simgpu/kernels as a library for ctypes."""
    native = HERE.parent.parent / "native"
    folder = tmp_path_factory.mktemp("kernels")
    flags = (
        "-std=gnu++20",
        "-O0",
        *sanitizer_flags,
        f"-I{native / 'simgpu' / 'kernels'}",
        f"-I{native / 'um_model'}",
    )

    def compiled(source: Path) -> str:
        target = folder / f"{source.stem}.o"
        subprocess.run(
            ["gcc", "-c", "-fPIC", "-Wall", *flags, "-o", str(target), str(source)], check=True
        )
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = tuple(pool.map(compiled, sorted((native / "simgpu" / "kernels").glob("*.cpp"))))
    return compile_program("kernels_probe.cpp", shared=True, flags=(*flags, *objects, "-lstdc++"))
