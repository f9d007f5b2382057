"""Programs of many kinds with less GPU memory than they need, on the simulated V100: on demand, and
under deepum with default settings.

A case fails that does not end with exit status 0, whose discards destroy what it still needs, or
that is less than twice as fast under deepum. Cases are in program_cases.py, what they run in
benchmarks/programs. A case whose packages are not installed is skipped: nothing is installed, and
nothing is fetched (models have random weights).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from program_cases import CASES, Case

from deepum.sizes import parse_size

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "benchmarks" / "programs"
PAGE = ROOT / "docs" / "programs.md"
BEGIN, END = "<!-- benchmarks/programs.py: begin -->", "<!-- benchmarks/programs.py: end -->"
MACHINE = "v100-16gb"
WANTED = 2.0  # times as fast as on demand
COLUMNS = (
    "program",
    "of",
    "footprint / card",
    "GPU s on demand",
    "deepum",
    "times as fast",
    "faults on demand",
    "deepum",
    "warnings",
)


@dataclass(frozen=True)
class Ran:
    """One run. `stats`: what --stats wrote, if it did; `output`: the last lines on standard
    error.
    """

    status: int
    stats: dict[str, Any] | None
    output: str

    def _counted(self, name: str) -> int:
        """Of the simulated GPUs of all processes."""
        processes = self.stats["processes"] if self.stats else []
        return sum(int(process["simulated"][name]) for process in processes if process["simulated"])

    def named(self, name: str) -> set[str]:
        """The same of a list of names."""
        processes = self.stats["processes"] if self.stats else []
        return {
            one
            for process in processes
            if process["simulated"]
            for one in process["simulated"][name]
        }

    @property
    def seconds(self) -> float:
        """GPU time, of the process that took longest."""
        return float(self.stats["gpu_time_max_s"] or 0) if self.stats else 0.0

    @property
    def faults(self) -> int:
        return int(self.stats["faults"] or 0) if self.stats else 0

    @property
    def peak_bytes(self) -> int:
        return int(self.stats["peak_allocated_bytes"]) if self.stats else 0

    @property
    def warnings(self) -> list[str]:
        return list(self.stats["warnings"]) if self.stats else []

    @property
    def destroyed(self) -> int:
        """Launches that read what a discard surely destroyed."""
        return self._counted("discarded_uses_sure")


def run(case: Case, policy: str, seconds: float) -> Ran:
    """The case under `deepum run`; 124 where it does not end in that time."""
    with tempfile.TemporaryDirectory(prefix="deepum-programs-") as folder:
        stats = Path(folder) / "stats.json"
        options = [
            "--device",
            f"sim:{MACHINE}",
            "--gpu-memory",
            case.memory,
            "--policy",
            policy,
            "--stats",
            str(stats),
        ]
        script = [str(SCRIPTS / case.script[0]), *case.script[1:]]
        command = [
            sys.executable,
            "-P",
            "-m",
            "deepum",
            "run",
            *options,
            "--",
            sys.executable,
            *case.launcher,
            *script,
        ]
        quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=folder, env=dict(os.environ) | quiet
            )
            try:
                status = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
                status = 124
            output.seek(0)
            lines = output.read().splitlines()
        statistics = json.loads(stats.read_text(encoding="utf-8")) if stats.exists() else None
        return Ran(status, statistics, "\n".join(lines[-12:]))


@dataclass(frozen=True)
class Comparison:
    """A case on demand and under deepum."""

    case: Case
    on_demand: Ran
    deepum: Ran

    @property
    def times_as_fast(self) -> float:
        return self.on_demand.seconds / self.deepum.seconds if self.deepum.seconds else 0.0

    def failures(self) -> list[str]:
        """What is not as it should be, each in a few words."""
        found = []
        for name, ran in (("on demand", self.on_demand), ("deepum", self.deepum)):
            if ran.status:
                found.append(f"{name}: exit status {ran.status}\n{ran.output}")
            if ran.destroyed:
                found.append(f"{name}: {ran.destroyed} launches read what a discard destroyed")
        if not found and self.times_as_fast < WANTED:
            found.append(f"{self.times_as_fast:.2f} times as fast as on demand, not {WANTED:g}")
        return found

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        package = self.case.packages[0]
        before, after = self.on_demand, self.deepum
        over = after.peak_bytes / parse_size(self.case.memory)
        failed = "; ".join(line.splitlines()[0] for line in self.failures())
        return (
            f"`{self.case.key}`: {self.case.what}",
            f"{package} {importlib.metadata.version(package).partition('+')[0]}",
            (
                f"{after.peak_bytes / 2**30:.1f} / {parse_size(self.case.memory) / 2**30:.3g} GiB "
                f"= {over:.1f}"
            ),
            f"{before.seconds:.2f}",
            f"{after.seconds:.2f}",
            f"{self.times_as_fast:.1f}",
            str(before.faults),
            str(after.faults),
            failed or str(len(after.warnings)),
        )


def missing(case: Case) -> list[str]:
    """Its packages that are not installed."""

    def there(package: str) -> bool:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return False
        return True

    return [package for package in case.packages if not there(package)]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def write_page(page: Path, rows: dict[str, str]) -> None:
    """Puts rows into the page's table, by key; rows of other cases stay as they are, those of cases
    that are no more go.
    """
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    table, ended, after = rest.partition(END)
    if not found or not ended:
        sys.exit(
            f"deepum: error: {page}: has no '{BEGIN}' and '{END}'; put both where the table belongs"
        )
    old = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    merged = old | rows
    lines = [
        _row(COLUMNS),
        "|---" * len(COLUMNS) + "|",
        *(merged[case.key] for case in CASES if case.key in merged),
    ]
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="KEY,...", help="these cases")
    parser.add_argument("--list", action="store_true", help="says what cases there are, instead")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="puts what was found into the table of docs/programs.md",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600,
        metavar="S",
        help="of real time, for each run (%(default)s)",
    )
    arguments = parser.parse_args()
    if arguments.list:
        for case in CASES:
            print(f"{case.key:<16} {case.packages[0]:<14} {case.memory:>8}  {case.what}")
        return
    known = {case.key: case for case in CASES}
    wanted = arguments.only.split(",") if arguments.only else list(known)
    if unknown := [key for key in wanted if key not in known]:
        parser.error(f"--only {unknown[0]}: there is no such case; see --list")
    print(_row(COLUMNS), flush=True)
    rows, failed = {}, 0
    for key in wanted:
        case = known[key]
        if lacking := missing(case):
            print(f"| `{key}`: {case.what} | skipped: needs {', '.join(lacking)} |", flush=True)
            continue
        done = Comparison(
            case,
            run(case, "on-demand", arguments.timeout),
            run(case, "correlation", arguments.timeout),
        )
        rows[key] = _row(done.cells())
        print(rows[key], flush=True)
        for line in (*done.failures(), *done.deepum.warnings):
            print(f"{key}: {line}", file=sys.stderr, flush=True)
        for name in sorted(done.deepum.named("general_kernels")):
            print(f"{key}: follows the general rule: {name}", file=sys.stderr, flush=True)
        for name in sorted(
            done.deepum.named("unparsed_kernels") | done.deepum.named("not_simulated")
        ):
            print(f"{key}: not simulated: {name}", file=sys.stderr, flush=True)
        failed += bool(done.failures())
    if arguments.markdown:
        write_page(PAGE, rows)
    if failed:
        sys.exit(f"deepum: error: {failed} of {len(rows)} programs failed; see their lines above")


if __name__ == "__main__":
    main()
