"""Runs random programs on the simulated GPU, under the shim or without it, and compares with the model of what they mean."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from proof_lowering import lower
from proof_programs import FLAVOURS, Program, random_program

from deepum.collect import Reports, read_sessions, wait_for_sessions
from deepum.device import Device
from deepum.launch import child_environment
from deepum.settings import BY_NAME, resolve

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SECONDS = 120.0  # that a batch may take; one takes about one


@dataclass(frozen=True)
class Tools:
    """What was compiled: the two executors and the host module."""

    on_gpu: Path
    model: Path
    kernels: Path


def compile_tools(folder: Path, cuda_include: Path, package: Path) -> Tools:
    """Compiles them into the folder. The executor is linked against the package's libcuda."""
    tools = Tools(folder / "proof-on-gpu", folder / "proof-model", folder / "proof-kernels.so")
    source = HERE / "executor"
    gcc = ["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    kernels = [*gcc, "-shared", "-fPIC", f"-I{ROOT / 'native' / 'simgpu'}", "-o", str(tools.kernels), str(source / "kernels.c")]
    model = [*gcc, "-o", str(tools.model), str(source / "executor.c"), str(source / "model.c"), "-lpthread"]
    on_gpu = [*gcc, f"-I{cuda_include}", "-o", str(tools.on_gpu), str(source / "executor.c"), str(source / "cuda.c")]
    for command in (kernels, model, [*on_gpu, f"-L{package / 'sim'}", "-l:libcuda.so.1", "-lpthread"]):
        subprocess.run(command, check=True)
    return tools


@dataclass(frozen=True)
class Batch:
    """Programs that one process runs one after the other, and under which settings (text, by name)."""

    number: int
    flavour: str
    seeds: tuple[int, ...]
    settings: dict[str, str] = field(hash=False)
    lock_step: bool = True
    random_eviction: int = 0  # the driver's own, a seed

    def __str__(self) -> str:
        order = self.settings["eviction_order"] if self.settings["policy"] == "correlation" else ""
        words = [str(self.number), self.flavour, self.settings["policy"], order, "" if self.lock_step else "free"]
        return "-".join(filter(None, [*words, "invalidation" if self.settings["invalidation"] == "1" else ""]))

    def programs(self) -> list[Program]:
        """Generated anew."""
        return [random_program(seed, self.flavour) for seed in self.seeds]

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """As `deepum run --device sim` makes it; what is the caller's (the runtime folder, for one) stays."""
        values = resolve({name: BY_NAME[name].parse(text, name) for name, text in self.settings.items()}, {})
        made, _ = child_environment(values, Device("v100-16gb"), base | {"DEEPUM_SIM_DEVICES": "2"})
        made |= {name: base[name] for name in base if name.startswith("DEEPUM_")}
        made["DEEPUM_SYNC"] = str(int(self.lock_step))
        made["DEEPUM_SIM_RANDOM_EVICTION"] = str(self.random_eviction)
        return made


# Programs a process: graphs are few, since from the first replay on nothing is discarded in that process.
_SIZES = {"streams": 50, "graphs": 10, "devices": 25}


def batches(programs: int, seed: int) -> list[Batch]:
    """Batches that have so many programs together. Each setting takes each of its values, in step lengths that share no factor."""
    made: list[Batch] = []
    left, next_seed = programs, seed * 1_000_000
    while left > 0:
        n = len(made)
        flavour = FLAVOURS[(0, 0, 1, 0, 0, 1, 0, 2)[n % 8]]
        count = min(left, _SIZES[flavour])
        settings = {
            "gpu_memory": ("64MiB", "64MiB", "96MiB")[n % 3],
            "policy": "on-demand" if n % 7 == 3 else "correlation",
            "eviction_order": ("oldest-last-use", "least-recently-migrated")[n % 2],
            "invalidation": "0" if n % 5 == 2 else "1",
            "prefetch_degree": ("2000", "2", "32", "2000", "0")[n % 5] if n % 11 else "1",
            "headroom_blocks": ("0", "16", "3")[(n // 2) % 3],
            "marker_interval": ("1", "16", "4", "64")[(n // 3) % 4],
            "chain_steps": ("8", "1", "64")[(n // 4) % 3],
            "confidence_launches": ("4096", "16")[(n // 5) % 2],
            "launch_queue": ("1024", "0", "8")[(n // 6) % 3],
        }
        lock_step = n % 6 != 4
        made.append(Batch(n, flavour, tuple(range(next_seed, next_seed + count)), settings, lock_step, n if n % 9 == 5 else 0))
        left -= count
        next_seed += count
    return made


@dataclass
class Outcome:
    """What a run of some programs gave: a line for each, by its place; `said` is the rest of what was printed."""

    results: dict[int, str]
    code: int | None
    said: str

    def first_difference(self, other: Outcome, count: int) -> int | None:
        """The place of the first program whose result is missing or another."""
        return next((i for i in range(count) if i not in self.results or self.results[i] != other.results.get(i)), None)


class Runner:
    """Runs programs in processes of their own. `base` is the environment without any of ours but the runtime folder."""

    def __init__(self, tools: Tools, folder: Path, base: dict[str, str]) -> None:
        self.tools = tools
        self.folder = folder
        self.base = base

    def write(self, programs: Sequence[Program], name: str = "programs.txt") -> Path:
        """The executor's text of the programs."""
        path = self.folder / name
        path.write_text("".join(lower(program, i) for i, program in enumerate(programs)))
        return path

    def _run(self, command: list[str], environment: dict[str, str]) -> Outcome:
        try:
            ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=self.folder)
        except subprocess.TimeoutExpired as late:
            out = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            return Outcome(_results(out), None, f"hangs: no end after {SECONDS:.0f} s")
        said = "\n".join(line for line in (ran.stdout + ran.stderr).splitlines() if not _is_result(line))
        return Outcome(_results(ran.stdout), ran.returncode, said)

    def meant(self, path: Path, trace: bool = False) -> Outcome:
        """By the model."""
        command = [str(self.tools.model), *(["--trace"] if trace else []), "-", str(path)]
        return self._run(command, self.base)

    def plain(self, path: Path) -> Outcome:
        """On an unlimited simulated card, the shim disabled."""
        environment = Batch(0, "", (), {"policy": "on-demand"}).environment(self.base)
        return self._run([str(self.tools.on_gpu), str(self.tools.kernels), str(path)], environment | {"DEEPUM_DISABLE": "1"})

    def under_deepum(self, path: Path, batch: Batch, trace: bool = False) -> Outcome:
        """Under the shim, with the batch's settings."""
        command = [str(self.tools.on_gpu), *(["--trace"] if trace else []), str(self.tools.kernels), str(path)]
        return self._run(command, batch.environment(self.base))

    def fails(self, programs: Sequence[Program], batch: Batch, times: int = 1) -> int | None:
        """The place of the first program that ends otherwise than it means, in one of so many runs."""
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
    made = {name: value for name, value in os.environ.items() if not name.startswith("DEEPUM_") and name not in ours}
    return made | {"DEEPUM_DAEMON": sys.executable}
