from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

from daemon_side import LIBRARIES  # noqa: E402
from runtime_tools import Ran  # noqa: E402


@pytest.fixture(scope="session")
def harness(
    tmp_path_factory: pytest.TempPathFactory, cuda_include: Path, sanitizer_flags: tuple[str, ...]
) -> Path:
    """The runtime on a driver that only writes down what it is asked, as a shared library."""
    folder = tmp_path_factory.mktemp("harness")
    rooms = [ROOT / "native" / "mover", ROOT / "native" / "runtime"]
    sources = [
        *(source for room in rooms for source in sorted(room.glob("*.cpp"))),
        ROOT / "tests" / "programs" / "runtime_harness.cpp",
    ]
    flags = [
        "-std=gnu++20",
        "-O1",
        "-g1",
        "-fPIC",
        *sanitizer_flags,
        *(f"-I{room}" for room in rooms),
        f"-I{ROOT / 'native/wire'}",
        f"-isystem{cuda_include}",
    ]

    def build(source: Path) -> Path:
        target = folder / (source.stem + ".o")
        subprocess.run(["g++", *flags, "-c", str(source), "-o", str(target)], check=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, sources))
    library = folder / "libharness.so"
    subprocess.run(
        ["g++", "-shared", "-pthread", *sanitizer_flags, "-o", str(library), *map(str, objects)],
        check=True,
    )
    return library


@pytest.fixture
def runtime_folder(tmp_path_factory: pytest.TempPathFactory, harness: Path) -> Path:
    folder = tmp_path_factory.mktemp("r")  # a socket's path is at most 107 bytes long
    folder.chmod(0o700)
    LIBRARIES[folder] = harness
    return folder


@pytest.fixture
def start(
    harness: Path, runtime_folder: Path, preloading: Callable[..., dict[str, str]]
) -> Callable[..., subprocess.Popen[str]]:
    """Starts a snippet on top of client.py; settings as keywords."""

    def start(snippet: str, **settings: str | None) -> subprocess.Popen[str]:
        environment: dict[str, str] = {
            key: value for key, value in os.environ.items() if not key.startswith("DEEPUM_")
        }
        environment |= preloading() | {
            "RUNTIME_HARNESS": str(harness),
            "DEEPUM_RUNTIME_DIR": str(runtime_folder),
            "DEEPUM_DAEMON": "/bin/false",
            # Else more goes with the first moves (test_blocking_calls.py).
            "DEEPUM_MOVES": "stream",
            "PYTHONPATH": str(HERE),
        }
        for key, value in settings.items():
            if value is None:
                environment.pop(key, None)
            else:
                environment[key] = value
        return subprocess.Popen(
            [sys.executable, "-c", "from client import *\n" + snippet],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Ran]:
    """Runs a snippet to its end."""

    def run(snippet: str, **settings: str | None) -> Ran:
        process = start(snippet, **settings)
        out, err = process.communicate(timeout=60)
        return Ran(process.returncode, out, err)

    return run
