"""Runs random programs on the simulated GPU, under the shim or without it, and compares with the
model of what they mean.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from proof_batches import Batch
from proof_lowering import lower
from proof_programs import Program

from deepum.paths import daemon_files
from deepum.statistics.collect import Reports, read_sessions, wait_for_sessions

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# That a batch may take; one takes about one on a machine that has nothing else to do.
SECONDS = 120.0


@dataclass(frozen=True)
class Tools:
    """What was compiled: the two executors and the host module."""

    on_gpu: Path
    model: Path
    kernels: Path
    slow: Path  # a folder with a libcuda.so.1 in which the mover dawdles


def compile_tools(folder: Path, cuda_include: Path, package: Path) -> Tools:
    """Compiles them into the folder. The executor is linked against the package's libcuda."""
    tools = Tools(
        folder / "proof-on-gpu",
        folder / "proof-model",
        folder / "proof-kernels.so",
        folder / "slow",
    )
    source = HERE / "executor"
    gcc = ["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    kernels = [
        *gcc,
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'native' / 'simgpu'}",
        "-o",
        str(tools.kernels),
        str(source / "kernels.c"),
    ]
    model = [
        *gcc,
        "-o",
        str(tools.model),
        str(source / "executor.c"),
        str(source / "model.c"),
        "-lpthread",
    ]
    on_gpu = [
        *gcc,
        f"-I{cuda_include}",
        "-o",
        str(tools.on_gpu),
        str(source / "executor.c"),
        str(source / "cuda.c"),
    ]
    for command in (
        kernels,
        model,
        [*on_gpu, f"-L{package / 'sim'}", "-l:libcuda.so.1", "-lpthread"],
    ):
        subprocess.run(command, check=True)
    tools.slow.mkdir()
    # Linked with an empty library of that name, or the real one's own name would be asked for:
    # libcuda.so.1 again.
    behind = tools.slow / "libcuda-behind.so"
    empty = [
        "gcc",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        os.devnull,
        f"-Wl,-soname,{behind.name}",
        "-o",
        str(behind),
    ]
    front = [
        *gcc,
        "-shared",
        "-fPIC",
        f"-I{cuda_include}",
        "-Wl,-soname,libcuda.so.1",
        str(source / "slow_driver.c"),
    ]
    front += [
        f"-L{tools.slow}",
        "-Wl,--no-as-needed",
        f"-l:{behind.name}",
        "-o",
        str(tools.slow / "libcuda.so.1"),
    ]
    for command in (empty, front):
        subprocess.run(command, check=True)
    behind.unlink()
    behind.symlink_to(package / "sim" / "libcuda.so.1")
    return tools


@dataclass
class Outcome:
    """What a run of some programs gave: a line for each, by its place; `messages` is the rest of
    what was printed.
    """

    results: dict[int, str]
    code: int | None
    messages: str

    def first_difference(self, other: Outcome, count: int) -> int | None:
        """The place of the first program whose result is missing or another."""
        return next(
            (
                i
                for i in range(count)
                if i not in self.results or self.results[i] != other.results.get(i)
            ),
            None,
        )


class Runner:
    """Runs programs in processes of their own. `base` is the environment without any of ours but
    the runtime folder.
    """

    def __init__(self, tools: Tools, folder: Path, base: dict[str, str]) -> None:
        self.tools = tools
        self.folder = folder
        self.base = base
        self.seconds = SECONDS
        self.counted: Counter[str] = Counter()  # "programs": so many ended as they mean

    def write(self, programs: Sequence[Program], name: str = "programs.txt") -> Path:
        """The executor's text of the programs."""
        path = self.folder / name
        path.write_text("".join(lower(program, i) for i, program in enumerate(programs)))
        return path

    def _run(self, command: list[str], environment: dict[str, str]) -> Outcome:
        try:
            ran = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=self.seconds,
                check=False,
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as late:
            out = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            return Outcome(_results(out), None, f"hangs: no end after {self.seconds:.0f} s")
        messages = "\n".join(
            line for line in (ran.stdout + ran.stderr).splitlines() if not _is_result(line)
        )
        return Outcome(_results(ran.stdout), ran.returncode, messages)

    def meant(self, path: Path, trace: bool = False) -> Outcome:
        """By the model."""
        command = [str(self.tools.model), *(["--trace"] if trace else []), "-", str(path)]
        return self._run(command, self.base)

    def plain(self, path: Path) -> Outcome:
        """On an unlimited simulated card, the shim disabled."""
        environment = Batch(0, "", (), {"policy": "on-demand"}).environment(self.base)
        return self._run(
            [str(self.tools.on_gpu), str(self.tools.kernels), str(path)],
            environment | {"DEEPUM_DISABLE": "1"},
        )

    def bare(self, path: Path) -> Outcome:
        """By whatever driver this machine has, without the shim."""
        return self._run([str(self.tools.on_gpu), str(self.tools.kernels), str(path)], self.base)

    def under_deepum(self, path: Path, batch: Batch, trace: bool = False) -> Outcome:
        """Under the shim, with the batch's settings."""
        command = [
            str(self.tools.on_gpu),
            *(["--trace"] if trace else []),
            str(self.tools.kernels),
            str(path),
        ]
        return self._run(command, batch.environment(self.base))

    def failure(self, batch: Batch) -> tuple[int, str] | None:
        """The place of the first program of the batch that ends otherwise than it means, and why;
        or that of the last one when only the process does not end well.
        """
        path = self.write(batch.programs())
        meant, ran = self.meant(path), self.under_deepum(path, batch)
        place = ran.first_difference(meant, len(batch.seeds))
        if place is None and ran.code == 0:
            return None
        return len(batch.seeds) - 1 if place is None else place, (
            ran.messages.strip().splitlines() or ["wrong content"]
        )[-1]

    def fails(self, programs: Sequence[Program], batch: Batch, times: int = 1) -> int | None:
        """The place of the first program that ends otherwise than it means, in one of so
        many runs.
        """
        path = self.write(programs, "tried.txt")
        meant = self.meant(path)
        for _ in range(times):
            place = self.under_deepum(path, batch).first_difference(meant, len(programs))
            if place is not None:
                return place
        return None

    def reports(self) -> Reports:
        """What the sessions and simulated drivers so far told, once the sessions are closed."""
        folder = Path(self.base["DEEPUM_STATS_DIR"])
        wait_for_sessions(folder, _pause)
        return read_sessions(folder)


def _pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _is_result(line: str) -> bool:
    words = line.split()
    return len(words) == 2 and words[0].isdigit() and len(words[1]) == 16


def _results(text: str) -> dict[int, str]:
    return {int(line.split()[0]): line.split()[1] for line in text.splitlines() if _is_result(line)}


def clean_environment() -> dict[str, str]:
    """The caller's, without any DEEPUM_* or preload."""
    ours = ("LD_PRELOAD", "LD_LIBRARY_PATH")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEEPUM_") and name not in ours
    }


@contextmanager
def opened(folder: Path, cuda_include: Path, package: Path) -> Iterator[Runner]:
    """A runner with a runtime folder and a daemon of its own, which end with it. `package`: the
    folder of deepum.
    """
    (folder / "stats").mkdir()
    with tempfile.TemporaryDirectory(prefix="deepum-p-", ignore_cleanup_errors=True) as runtime:
        daemon = folder / "daemon"
        daemon.write_text(
            f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -P "
            f"{shlex.quote(str(HERE / 'late_daemon.py'))}\n"
        )
        daemon.chmod(0o700)
        base = clean_environment() | {
            "DEEPUM_RUNTIME_DIR": runtime,
            "DEEPUM_DAEMON": str(daemon),
            "DEEPUM_DAEMON_IDLE": "10",
            "DEEPUM_STATS_DIR": str(folder / "stats"),
            "DEEPUM_PROOF_SLOW": str(folder / "slow"),
        }
        yield Runner(compile_tools(folder, cuda_include, package), folder, base)
        for process in _holders(daemon_files(Path(runtime)).lock):
            os.kill(process, 15)


def _holders(lock: Path) -> list[int]:
    """Processes that hold the daemon's lock open."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and any(
                fd.readlink() == lock for fd in (process / "fd").iterdir()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found
