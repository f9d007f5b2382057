"""A daemon serves programs of its own installation and version only; those of another one get their
own, in the same folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from running import holders, lock_of, socket_of, wait_until

from deepum.paths import daemon_files

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "driver_api"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def program(compile_program: Callable[..., Path]) -> list[str]:
    """A short program of the driver API."""
    return [
        str(compile_program(EXAMPLES / "sweep.c", link_cuda=True)),
        str(compile_program(EXAMPLES / "kernels.c", shared=True)),
        "4",
        "8",
        "3",
    ]


@pytest.fixture
def other(package: Path, tmp_path: Path) -> Path:
    """Another installation: the same files, elsewhere, with a shim that is its own to change, and
    of another version.
    """
    made = tmp_path / "other" / "deepum"
    shutil.copytree(
        package,
        made,
        copy_function=os.symlink,
        ignore=shutil.ignore_patterns("__pycache__", "lib", "*.py"),
    )
    shutil.copytree(package / "lib", made / "lib")
    for source in package.rglob("*.py"):
        shutil.copy(source, made / source.relative_to(package))
    text = (made / "__init__.py").read_text()
    assert '__version__ = "' in text
    (made / "__init__.py").write_text(text.replace('__version__ = "', '__version__ = "77.'))
    return made


@pytest.fixture
def run(environment: dict[str, str], program: list[str], tmp_path: Path) -> Run:
    """Runs the program by the `deepum run` of an installation; the answer has its statistics as
    `stdout`.
    """

    def run(package: Path, *command: str) -> subprocess.CompletedProcess[str]:
        made = environment | {
            "PYTHONPATH": f"{package.parent}:{environment['PYTHONPATH']}",
            "DEEPUM_DAEMON_IDLE": "60",
        }
        flags = ["--device", "sim", "--gpu-memory", "64MiB", "--stats", str(tmp_path / "s.json")]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "deepum", "run", *flags, "--", *(command or program)],
            env=made,
            text=True,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        done.stdout = (tmp_path / "s.json").read_text()
        return done

    return run


def _served(done: subprocess.CompletedProcess[str]) -> None:
    statistics = json.loads(done.stdout)
    assert (
        statistics["warnings"] == []
        and statistics["processes"][0]["session"]["core"]["launches"] > 0
    )


def _logged(folder: Path) -> list[str]:
    return [
        line.split(" began: ")[1]
        for line in (folder / "daemon.log").read_text().splitlines()
        if " began: " in line
    ]


def test_each_installation_has_a_daemon_of_its_own(
    run: Run, package: Path, other: Path, runtime_dir: Path
) -> None:
    for installation in (package, other, package, other):
        _served(run(installation))
    ours, theirs = (
        lock_of(runtime_dir),
        daemon_files(runtime_dir, other / "lib" / "libdeepum.so").lock,
    )
    assert (
        ours != theirs
        and len(holders(ours)) == len(holders(theirs)) == 1
        and holders(ours) != holders(theirs)
    )
    from deepum import __version__

    assert _logged(runtime_dir) == [
        f"version {__version__} of {package}",
        f"version 77.{__version__} of {other}",
    ]


def test_an_installation_that_changed_gets_another_daemon_and_the_one_before_serves_on(
    run: Run, other: Path, runtime_dir: Path
) -> None:
    _served(run(other))
    shim = other / "lib" / "libdeepum.so"
    before = daemon_files(runtime_dir, shim)
    os.utime(shim, (1e9, 1e9))
    _served(run(other))
    assert daemon_files(runtime_dir, shim) != before
    assert (
        before.socket.exists()
        and holders(before.lock)
        and holders(daemon_files(runtime_dir, shim).lock)
    )


def test_the_daemon_is_the_shims_whatever_else_a_program_would_import(
    run: Run, other: Path, program: list[str], runtime_dir: Path
) -> None:
    """The program's own environment finds another deepum first, or none."""
    _served(run(other, "sh", "-c", f"unset PYTHONPATH; exec {' '.join(program)}"))
    assert [line.rpartition(" ")[2] for line in _logged(runtime_dir)] == [str(other)]


def test_what_killed_daemons_of_other_installations_left_is_taken_away(
    run: Run, package: Path, other: Path, runtime_dir: Path
) -> None:
    _served(run(other))
    left = daemon_files(runtime_dir, other / "lib" / "libdeepum.so")
    (daemon,) = holders(left.lock)
    os.kill(daemon, 9)
    assert wait_until(lambda: not holders(left.lock)) and left.socket.exists()
    _served(run(package))
    assert socket_of(runtime_dir).exists()
    assert not left.socket.exists() and not left.lock.exists()
