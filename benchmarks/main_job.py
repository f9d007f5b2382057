"""The main job: a training script on the simulated GPU, on demand, under deepum and with unlimited
memory, step by step.

Step times are the script's own (CUDA events, in virtual time, lines `step N: X ms`). Faults and
bytes of a step are read off the simulated driver's timeline, which has a point at each call that
waits, so also at each step's end: a step lies between the point where its time was read and the one
that lies its length before.

The lower bound of a step is the larger of
  - its time with unlimited memory, and
  - bytes that must move / link bandwidth: when the most memory is in use by the script (PyTorch's
    own count of allocated bytes, all
    of it to be used again), what exceeds the card has to be on the host: it was moved out before
    and is moved in after, in each step.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deepum.machines import machines

ROOT = Path(__file__).resolve().parent.parent
COUNTERS = ("faults", "fault_batches", "bytes_h2d", "bytes_d2h", "kernels")
WARM_UP = 3  # steps; "after the third step"


class JobError(Exception):
    """A run that cannot be evaluated; the text is one line."""


@dataclass
class Step:
    """One training step: milliseconds of virtual time; counts over the step, None where the
    timeline does not tell.
    """

    ms: float
    counts: dict[str, int] | None = None


@dataclass
class Run:
    """One run of the script under one policy."""

    name: str
    steps: list[Step]
    peak_allocated_bytes: int | None
    statistics: dict[str, Any] = field(repr=False)

    def mean_ms(self, warm_up: int = WARM_UP) -> float:
        """Of the steps after the warm-up."""
        steady = self.steps[warm_up:]
        return sum(step.ms for step in steady) / len(steady)

    def means(self, warm_up: int = WARM_UP) -> dict[str, float] | None:
        """Counts of the steps after the warm-up, a step; None where the timeline does not tell."""
        known = [step.counts for step in self.steps[warm_up:] if step.counts is not None]
        return (
            {name: sum(counts[name] for counts in known) / len(known) for name in COUNTERS}
            if known
            else None
        )


def attribute(steps: list[Step], timeline: list[dict[str, Any]]) -> None:
    """Gives each step its counts, from the last step backwards."""
    points = sorted(timeline, key=lambda point: float(point["t_s"]))
    at = len(points) - 1
    starts: list[int | None] = [None] * len(steps)
    ends: list[int | None] = [None] * len(steps)
    for number in reversed(range(len(steps))):
        seconds = steps[number].ms / 1000
        # The end is the latest point that has another one its length before it (where the step
        # before was waited for).
        slack = 0.02 * seconds + 0.002
        found = None
        for end in range(at, 0, -1):
            begin = next(
                (
                    i
                    for i in range(end - 1, -1, -1)
                    if points[i]["t_s"] <= points[end]["t_s"] - seconds + slack / 4
                ),
                None,
            )
            if begin is not None and points[end]["t_s"] - points[begin]["t_s"] <= seconds + slack:
                found = (begin, end)
                break
        if found is None:
            break
        starts[number], ends[number] = found
        at = found[0]
    for step, first, last in zip(steps, starts, ends, strict=True):
        if first is not None and last is not None:
            step.counts = {
                name: int(points[last][name]) - int(points[first][name]) for name in COUNTERS
            }


def say(line: str) -> None:
    """On standard error."""
    print(line, file=sys.stderr, flush=True)


def run(
    name: str,
    options: list[str],
    script: list[str],
    tell: Callable[[str], None] = say,
    errors: Path | None = None,
) -> Run:
    """Runs the script under `deepum run` with these options. `tell` gets its lines as they come;
    what it says on standard error goes to the file `errors`, if given. Raises JobError.
    """
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="deepum-job-"))
        stats = Path(folder) / "stats.json"
        command = [
            sys.executable,
            "-P",
            "-m",
            "deepum",
            "run",
            "--stats",
            str(stats),
            *options,
            "--",
            sys.executable,
            *script,
        ]
        tell(f"[{name}] deepum run {' '.join(options)}")
        stderr = (
            opened.enter_context(errors.open("w", encoding="utf-8")) if errors is not None else None
        )
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=folder
        )
        assert process.stdout is not None
        steps, allocated = [], None
        for line in process.stdout:
            tell(f"[{name}] {line.rstrip()}")
            if match := re.match(r"(?:rank 0\b[^,]*, )?(?:step|round) \d+: ([\d.]+) ms", line):
                steps.append(Step(float(match[1])))
            elif match := re.search(r"peak memory: ([\d.]+) GiB allocated", line):
                allocated = int(float(match[1]) * 2**30)
        if process.wait() != 0:
            raise JobError(
                f"{name}: the script ended with {process.returncode}; see its messages above"
            )
        statistics = json.loads(stats.read_text(encoding="utf-8"))
    if len(steps) <= WARM_UP:
        raise JobError(
            f"{name}: the script printed {len(steps)} lines 'step N: X ms'; let it make at "
            f"least {WARM_UP + 1} steps"
        )
    simulated = next(
        (process["simulated"] for process in statistics["processes"] if process["simulated"]), None
    )
    if simulated is not None:
        attribute(steps, simulated["timeline"])
    return Run(name, steps, allocated, statistics)


def machine(name: str) -> dict[str, Any]:
    """A preset's figures. Raises JobError."""
    for preset in machines():
        if preset.name == name:
            return asdict(preset)
    raise JobError(f"machine '{name}': is unknown; see `deepum machines`")


def bound(
    compute_ms: float, peak_allocated_bytes: int | None, preset: dict[str, Any], memory_bytes: int
) -> dict[str, float | None]:
    """The lower bound of a steady step, in ms, and its parts; time and bytes are those of the run
    with unlimited memory.
    """
    if peak_allocated_bytes is None:
        return {
            "compute_ms": compute_ms,
            "bytes_must_move": None,
            "transfer_ms": None,
            "bound_ms": compute_ms,
        }
    excess = max(0, peak_allocated_bytes - memory_bytes)
    transfer = max(excess / preset["h2d_gbps"], excess / preset["d2h_gbps"]) / 1e6
    return {
        "compute_ms": compute_ms,
        "bytes_must_move": float(excess),
        "transfer_ms": transfer,
        "bound_ms": max(compute_ms, transfer),
    }


def _cells(ms: float, counts: Mapping[str, float] | None) -> str:
    if counts is None:
        return f"{ms:>9.1f}{'?':>9}{'?':>8}{'?':>8}"
    return (
        f"{ms:>9.1f}{counts['faults']:>9.0f}{counts['bytes_h2d'] / 2**30:>8.2f}"
        f"{counts['bytes_d2h'] / 2**30:>8.2f}"
    )


def table(runs: list[Run], limits: dict[str, float | None], memory_bytes: int) -> str:
    """The figures for people."""
    on_demand, correlation, _ = runs
    lines = [f"{'':>10}" + "".join(f"{run.name:>34}" for run in runs)]
    lines.append(f"{'step':>10}" + f"{'ms':>9}{'faults':>9}{'GiB in':>8}{'out':>8}" * len(runs))
    for number in range(len(on_demand.steps)):
        lines.append(
            f"{number + 1:>10}"
            + "".join(_cells(run.steps[number].ms, run.steps[number].counts) for run in runs)
        )
    lines.append(
        f"{f'mean {WARM_UP + 1}-':>10}"
        + "".join(_cells(run.mean_ms(), run.means()) for run in runs)
    )
    lines.append("")
    if on_demand.peak_allocated_bytes is not None:
        allocated = on_demand.peak_allocated_bytes
        lines.append(
            f"footprint: {allocated / 2**30:.1f} GiB on a card of {memory_bytes / 2**30:.1f} "
            f"GiB ({allocated / memory_bytes:.2f} x)"
        )
    total = sum(step.ms for step in on_demand.steps) / sum(step.ms for step in correlation.steps)
    steady = on_demand.mean_ms() / correlation.mean_ms()
    lines.append(
        f"speed-up over on demand: {steady:.2f} x after step {WARM_UP}; {total:.2f} x over "
        f"all steps, warm-up included"
    )
    before, after = on_demand.means(), correlation.means()
    if before is not None and after is not None and before["faults"]:
        lines.append(
            f"faults gone after step {WARM_UP}: {1 - after['faults'] / before['faults']:.1%}"
        )
    moving = limits["transfer_ms"]
    parts = f"compute {limits['compute_ms']:.1f} ms" + (
        f", transfer {moving:.1f} ms" if moving is not None else ""
    )
    best = limits["bound_ms"] or 1e-9
    ratios = (
        f"deepum {correlation.mean_ms() / best:.2f} x of it; most possible speed-up "
        f"{on_demand.mean_ms() / best:.2f} x"
    )
    lines.append(f"lower bound: {best:.1f} ms a step ({parts}); {ratios}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", default="v100-16gb")
    parser.add_argument(
        "--gpu-memory", metavar="GIB", type=float, help="of the card; the machine's unless given"
    )
    parser.add_argument("--model", default="small")
    parser.add_argument("--batch", type=int, default=15)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument(
        "--tune",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="as of `deepum run`, for the run with deepum",
    )
    parser.add_argument(
        "--script",
        nargs=argparse.REMAINDER,
        help="another script, with its arguments, that prints `step N: X ms`; comes last",
    )
    parser.add_argument("--json", metavar="FILE", help="all figures")
    given = parser.parse_args()
    script = given.script or [
        *(
            str(ROOT / "examples" / "train_gpt2.py"),
            "--model",
            given.model,
            "--batch",
            str(given.batch),
        ),
        *("--sequence", str(given.sequence), "--steps", str(given.steps)),
    ]
    if Path(script[0]).exists():
        script[0] = str(Path(script[0]).resolve())
    try:
        preset = machine(given.machine)
        memory = int(given.gpu_memory * 2**30) if given.gpu_memory else int(preset["memory_bytes"])
        device = ["--device", f"sim:{given.machine}"]
        card = ["--gpu-memory", str(memory)]
        tuned = [part for one in given.tune for part in ("--tune", one)]
        runs = [
            run("on demand", [*device, *card, "--policy", "on-demand"], script),
            run("deepum", [*device, *card, "--policy", "correlation", *tuned], script),
            run("unlimited", [*device, "--gpu-memory", "1TiB", "--policy", "on-demand"], script),
        ]
    except JobError as error:
        sys.exit(f"deepum: error: {error}")
    limits = bound(runs[2].mean_ms(), runs[2].peak_allocated_bytes, preset, memory)
    print(table(runs, limits, memory))
    if given.json:
        document = {
            "version": 1,
            "machine": given.machine,
            "memory_bytes": memory,
            "script": script,
            "bound": limits,
            "runs": [asdict(one) for one in runs],
        }
        Path(given.json).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
