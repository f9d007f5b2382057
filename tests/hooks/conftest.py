from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from fake_daemon import FakeDaemon  # noqa: E402
from running import Ran  # noqa: E402


@pytest.fixture(scope="session")
def shim(package: Path) -> Path:
    """The library under test; DEEPUM_SHIM names another."""
    library = Path(os.environ.get("DEEPUM_SHIM", package / "lib" / "libdeepum.so"))
    assert library.exists(), f"{library} is not built: scripts/build"
    return library


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory, cuda_include: Path) -> Callable[..., Path]:
    folder = tmp_path_factory.mktemp("programs")

    def build(source: str | Path, name: str, *flags: str) -> Path:
        path = HERE.parent / "programs" / source if isinstance(source, str) else source
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["gcc", "-O2", "-w", f"-I{cuda_include}", str(path), "-o", str(target), *flags]
        subprocess.run(command, check=True)
        return target

    return build


@pytest.fixture(scope="session")
def fake_driver(compile_c: Callable[..., Path]) -> Path:
    """The folder of a libcuda.so.1 that does nothing."""
    library = compile_c(
        "hook_fake_libcuda.c",
        "driver/libcuda.so.1",
        "-shared",
        "-fPIC",
        "-Wl,-Bsymbolic",
        "-Wl,-soname,libcuda.so.1",
    )
    return library.parent


@pytest.fixture
def environment(
    shim: Path, fake_driver: Path, runtime_dir: Path, preloading: Callable[..., dict[str, str]]
) -> dict[str, str]:
    """Under the shim, with the fake driver, and no daemon to be started."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DEEPUM_")}
    return {
        **kept,
        **preloading(shim),
        "LD_LIBRARY_PATH": str(fake_driver),
        "DEEPUM_RUNTIME_DIR": str(runtime_dir),
        "DEEPUM_DAEMON": "/bin/false",
        "DEEPUM_LOG": "0",
        "DEEPUM_HOST_MEMORY": str(4 << 30),
        "DEEPUM_HOST_MEMORY_VIRTUAL": "1",  # the fake driver has none
        "PYTHONPATH": str(HERE),
    }


@pytest.fixture
def run(environment: dict[str, str], listener: FakeDaemon) -> Callable[..., Ran]:
    """Runs a program, or a snippet on top of client.py, under the shim and with a daemon that only
    listens.
    """

    def run(program: str | list[str | Path], **settings: str | None) -> Ran:
        command = (
            [sys.executable, "-c", "from client import *\n" + program]
            if isinstance(program, str)
            else [str(p) for p in program]
        )
        merged: dict[str, str] = dict(environment)
        for key, value in settings.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        done = subprocess.run(command, env=merged, capture_output=True, text=True, timeout=40)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def listener(runtime_dir: Path, shim: Path) -> Iterator[FakeDaemon]:
    with FakeDaemon(runtime_dir, shim) as daemon:
        yield daemon
