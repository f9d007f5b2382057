"""Is steady steady: each step of a training that repeats, on the simulated GPU under deepum,
against the median of those after the warm-up.

    python benchmarks/steadiness.py            # BERT base, batch 40, on a V100 of 16 GB, 40 steps
    python benchmarks/steadiness.py --script examples/train_gpt2.py --batch 15 --steps 40
    python benchmarks/steadiness.py --script -m torch.distributed.run --standalone
        --nproc-per-node 2 examples/train_ddp.py --width 8192
    python benchmarks/steadiness.py --warm     # once more with the profile of the first run, and
                                               # without a limit on memory

Steps are the script's own (lines `step N: X ms`, virtual time; of several ranks those of rank 0),
faults and bytes, of one of the ranks, as benchmarks/main_job.py tells them. Exits with 1 if a step
after the warm-up is longer than `--limit` times the median of those.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from main_job import ROOT, JobError, Run, run

WARM_UP = 4  # steps


def resolved(argument: str) -> str:
    """The script runs in another folder."""
    return str(Path(argument).resolve()) if Path(argument).is_file() else argument


def tell(job: Run, warm_up: int) -> tuple[float, float]:
    """Prints the steps. Returns the median of those after the warm-up, in ms, and how many times as
    long the longest of them is.
    """
    steady = [step.ms for step in job.steps[warm_up:]]
    median, longest = statistics.median(steady), max(steady)
    print(f"{job.name}\n{'step':>5}{'ms':>10}{'/ median':>10}{'faults':>9}{'GiB in':>9}{'out':>9}")
    for number, step in enumerate(job.steps, 1):
        counts = step.counts
        cells = (
            f"{counts['faults']:>9}{counts['bytes_h2d'] / 2**30:>9.2f}"
            f"{counts['bytes_d2h'] / 2**30:>9.2f}"
            if counts
            else ""
        )
        print(f"{number:>5}{step.ms:>10.2f}{step.ms / median:>10.3f}{cells}")
    at = warm_up + steady.index(longest) + 1
    print(
        f"after step {warm_up}: median {median:.2f} ms, longest {longest / median:.3f} times "
        f"that (step {at})\n"
    )
    return median, longest / median


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--machine", default="v100-16gb")
    parser.add_argument(
        "--gpu-memory", metavar="SIZE", help="of the card; the machine's unless given"
    )
    parser.add_argument(
        "--steps", type=int, default=40, help="of the script that is run unless another is given"
    )
    parser.add_argument(
        "--warm-up",
        type=int,
        default=WARM_UP,
        metavar="N",
        help=f"steps that do not count ({WARM_UP})",
    )
    parser.add_argument(
        "--limit", type=float, default=1.05, help="most that a step may take, in medians (1.05)"
    )
    parser.add_argument(
        "--warm",
        action="store_true",
        help="also with the profile of the first run, and with unlimited memory",
    )
    parser.add_argument(
        "--script", nargs=argparse.REMAINDER, help="another script, with its arguments; comes last"
    )
    given = parser.parse_args()
    script = given.script or [
        str(ROOT / "examples" / "train_bert.py"),
        "--batch",
        "40",
        "--steps",
        str(given.steps),
    ]
    script = [resolved(argument) for argument in script]
    device = ["--device", f"sim:{given.machine}"]
    card = ["--gpu-memory", given.gpu_memory] if given.gpu_memory else []
    try:
        with tempfile.TemporaryDirectory(prefix="deepum-steadiness-") as folder:
            keep = ["--profile", str(Path(folder) / "profile")] if given.warm else []
            cold = run("deepum", [*device, *card, *keep], script)
            _, ratio = tell(cold, given.warm_up)
            if given.warm:
                warm = run("deepum, warm", [*device, *card, *keep], script)
                warm_median, warm_ratio = tell(warm, given.warm_up)
                free = run(
                    "unlimited", [*device, "--gpu-memory", "1TiB", "--policy", "on-demand"], script
                )
                tell(free, given.warm_up)
                first = ", ".join(
                    f"{job.name} {job.steps[0].ms:.2f} ms" for job in (cold, warm, free)
                )
                print(
                    f"first step: {first}; warm it is {warm.steps[0].ms / warm_median:.3f} "
                    f"times the median"
                )
                ratio = max(ratio, warm_ratio)
    except JobError as error:
        sys.exit(f"deepum: error: {error}")
    sys.exit(ratio > given.limit)


if __name__ == "__main__":
    main()
