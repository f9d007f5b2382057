"""What each mechanism earns: training steps on the simulated GPU, with one mechanism more from row to row, or by prefetch degree.

    python benchmarks/ablation.py mechanisms --json FILE
    python benchmarks/ablation.py degrees --json FILE --plot FILE.png

Rows of `mechanisms`, the first five after the paper's ablation (DeepUM, section 6):

  on-demand          unified memory with the driver's own prefetcher and eviction
  + prefetch         predicted by the paper's tables, N = 32, least recently migrated first; no space is kept free ahead of need
  + pre-eviction     with space kept free
  + invalidation     with dead PyTorch blocks dropped: the paper's system
  ours, no inval.    predicted by history, oldest last use first
  ours               with dead blocks dropped
  ours, next use     and by the furthest next use

Times are the script's own (virtual); faults and bytes are a step, of those after the third. The bound is that of benchmarks/main_job.py.
What is in the JSON file is not run again, so that an interrupted table goes on where it stopped.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
from pathlib import Path
from typing import Any

from main_job import ROOT, WARM_UP, JobError, Run, machine, run

PAPER = ["--prediction", "tables", "--eviction-order", "least-recently-migrated", "--prefetch-degree", "32"]
ROWS: dict[str, list[str]] = {
    "on-demand": ["--policy", "on-demand"],
    "+ prefetch": [*PAPER, "--headroom-blocks", "0", "--invalidation", "0"],
    "+ pre-eviction": [*PAPER, "--invalidation", "0"],
    "+ invalidation": [*PAPER, "--invalidation", "1"],
    "ours, no inval.": ["--invalidation", "0"],
    "ours": ["--invalidation", "1"],
    "ours, next use": ["--invalidation", "1", "--eviction-order", "furthest-next-use"],
}
# The script, and cards with their memory in GiB (0: the machine's own); what fits the cards of today gets smaller ones.
JOBS: dict[str, tuple[list[str], list[tuple[str, float]]]] = {
    "gpt2-xl b5": (["train_gpt2.py", "--model", "xl", "--batch", "5"], [("v100-32gb", 0), ("v100-16gb", 0)]),
    "gpt2-small b8": (["train_gpt2.py", "--model", "small", "--batch", "8"], [("v100-32gb", 0), ("v100-16gb", 0), ("v100-16gb", 8)]),
    "bert-large b16": (["train_bert.py", "--model", "large", "--batch", "16"], [("v100-32gb", 0), ("v100-16gb", 0)]),
    "dlrm": (["dlrm_like.py", "--tables", "8"], [("v100-16gb", 2)]),
}
TINY: dict[str, tuple[list[str], list[tuple[str, float]]]] = {
    "tiny": (["train_gpt2.py", "--model", "tiny", "--batch", "8", "--sequence", "256"], [("v100-16gb", 1)]),
}
DEGREES = [2**power for power in range(12)]


def figures(one: Run) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "steps_ms": [step.ms for step in one.steps],
        "step_ms": one.mean_ms(),
        "a_step": one.means(),
        "peak_allocated_bytes": one.peak_allocated_bytes,
        "peak_resident_bytes": one.statistics.get("peak_resident_bytes"),
        "bytes_discarded": one.statistics.get("bytes_discarded"),
    }


class Results:
    """The JSON file: written after each run."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.runs: dict[str, Any] = {}
        if path is not None and path.exists():
            self.runs = json.loads(path.read_text(encoding="utf-8"))["runs"]

    def get(self, key: str, options: list[str], script: list[str]) -> dict[str, Any]:
        """The figures of that run, made if they are not there yet."""
        if key not in self.runs:
            self.runs[key] = figures(run(key, options, script))
            if self.path is not None:
                told = {"version": 1, "date": datetime.date.today().isoformat(), "python": platform.python_version(), "runs": self.runs}
                self.path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        return dict(self.runs[key])


def memory_of(preset: dict[str, Any], gibibytes: float) -> int:
    """Bytes of the card."""
    return int(gibibytes * 2**30) if gibibytes else int(preset["memory_bytes"])


def table_row(name: str, one: dict[str, Any], base: dict[str, Any], best_ms: float) -> str:
    """A line for people."""
    counts = one["a_step"]
    moved = (
        f"{counts['faults']:>9.0f}{counts['bytes_h2d'] / 2**30:>8.2f}{counts['bytes_d2h'] / 2**30:>8.2f}"
        if counts is not None
        else f"{'?':>9}{'?':>8}{'?':>8}"
    )
    ms = one["step_ms"]
    return f"  {name:<16}{ms:>10.1f}{moved}{base['step_ms'] / ms:>10.2f}{ms / best_ms:>10.2f}"


def mechanisms(results: Results, jobs: dict[str, tuple[list[str], list[tuple[str, float]]]], only: str | None, steps: int) -> None:
    """The table, job by job."""
    for job, (script, cards) in jobs.items():
        if only is not None and only not in job:
            continue
        command = [str(ROOT / "examples" / script[0]), *script[1:], "--steps", str(steps)]
        for name, gibibytes in cards:
            preset = machine(name)
            memory = memory_of(preset, gibibytes)
            key = f"{job} on {name}, {memory / 2**30:g} GiB"
            device = ["--device", f"sim:{name}"]
            unlimited = results.get(f"{key}: unlimited", [*device, "--gpu-memory", "1TiB", "--policy", "on-demand"], command)
            rows = {
                row: results.get(f"{key}: {row}", [*device, "--gpu-memory", str(memory), *options], command)
                for row, options in ROWS.items()
            }
            excess = max(0, (unlimited["peak_allocated_bytes"] or 0) - memory)
            best = max(unlimited["step_ms"], excess / min(preset["h2d_gbps"], preset["d2h_gbps"]) / 1e6)
            print(f"{key}: footprint {(unlimited['peak_allocated_bytes'] or 0) / 2**30:.1f} GiB; lower bound {best:.1f} ms a step")
            print(f"  {'':<16}{'ms':>10}{'faults':>9}{'GiB in':>8}{'out':>8}{'speed-up':>10}{'of bound':>10}")
            for row, one in rows.items():
                print(table_row(row, one, rows["on-demand"], best))
            print(table_row("unlimited", unlimited, rows["on-demand"], best), flush=True)


def degrees(
    results: Results, jobs: dict[str, tuple[list[str], list[tuple[str, float]]]], only: str | None, steps: int, plot: Path | None
) -> None:
    """Speed-up over on-demand by prefetch degree, of the paper's system and of ours."""
    curves: dict[str, list[float]] = {}
    for job, (script, cards) in jobs.items():
        if only is not None and only not in job:
            continue
        command = [str(ROOT / "examples" / script[0]), *script[1:], "--steps", str(steps)]
        name, gibibytes = cards[-1]
        memory = memory_of(machine(name), gibibytes)
        key = f"{job} on {name}, {memory / 2**30:g} GiB"
        device = ["--device", f"sim:{name}", "--gpu-memory", str(memory)]
        base = results.get(f"{key}: on-demand", [*device, *ROWS["on-demand"]], command)
        for system, options in (("paper", ROWS["+ invalidation"]), ("ours", ROWS["ours"])):
            found = [
                results.get(f"{key}: {system}, N = {degree}", [*device, *options, "--prefetch-degree", str(degree)], command)
                for degree in DEGREES
            ]
            curves[f"{job}, {system}"] = [base["step_ms"] / one["step_ms"] for one in found]
            print(
                f"{job}, {system}: " + "  ".join(f"N={n} {x:.2f}" for n, x in zip(DEGREES, curves[f"{job}, {system}"], strict=True)),
                flush=True,
            )
    if plot is not None:
        draw(curves, plot)


def draw(curves: dict[str, list[float]], path: Path) -> None:
    """The curves as a PNG. Raises JobError without matplotlib."""
    try:
        import matplotlib.pyplot as plt  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise JobError("--plot: matplotlib is missing; install it with `pip install deepum[figures]`") from None
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, values in curves.items():
        axes.plot(DEGREES, values, marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("prefetch degree N (launches)")
    axes.set_ylabel("speed-up over on-demand")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("mechanisms", "degrees"))
    parser.add_argument("--json", metavar="FILE", type=Path, help="all figures; runs that are in there are not repeated")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="of `degrees`, a PNG")
    parser.add_argument("--only", metavar="TEXT", help="jobs whose name contains it")
    parser.add_argument("--steps", type=int, default=WARM_UP + 2)
    parser.add_argument("--tiny", action="store_true", help="a model that takes seconds, to try the script")
    given = parser.parse_args()
    if given.steps <= WARM_UP:
        sys.exit(f"deepum: error: --steps: {given.steps} leaves none after the warm-up; give at least {WARM_UP + 1}")
    jobs = TINY if given.tiny else JOBS
    try:
        results = Results(given.json)
        if given.what == "mechanisms":
            mechanisms(results, jobs, given.only, given.steps)
        else:
            degrees(results, jobs, given.only, given.steps, given.plot)
    except JobError as error:
        sys.exit(f"deepum: error: {error}")
    except (json.JSONDecodeError, KeyError, TypeError):
        sys.exit(f"deepum: error: {given.json}: is not a file of results of this script; give another, or remove it")


if __name__ == "__main__":
    main()
