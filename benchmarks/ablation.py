"""What each mechanism earns: training steps on the simulated GPU, with one mechanism more from row
to row, or by prefetch degree.

    python benchmarks/ablation.py mechanisms --json FILE
    python benchmarks/ablation.py degrees --json FILE --plot FILE.svg
    python benchmarks/ablation.py page --json FILE

Rows of `mechanisms`, the first four after the paper's ablation (DeepUM, section 6):

  on-demand          unified memory with the driver's own prefetcher and eviction
  + prefetch         predicted by the paper's tables, N = 32; the driver evicts for what is fetched
  + pre-eviction     space is made ahead of need, least recently migrated first
  + invalidation     with dead PyTorch blocks dropped: the paper's system
  + advice           tables of which kernels use a few rows stay on the host
  ours, no inval.    predicted by history, oldest last use first; with advice
  ours               with dead blocks dropped
  ours, next use     by the furthest next use instead: the default
  ours, clean        and with clean copies, faults observed
  unlimited          a card on which everything fits

Times are the script's own (virtual); faults and bytes are a step, of those after the warm-up. The
bound is that of benchmarks/main_job.py. The program runs as on a GPU, out of lock-step and with
gates, and with the expected driver; --mode and --costs choose others. Out of lock-step the times of
two runs differ by up to one per cent.

Each run is written down as it ends, in a file for its case beside FILE (FILE.parts/); the end
merges them into FILE. What is there and was run with the same settings is not run again, so that an
interrupted table goes on where it stopped. A run that fails costs its row. `page` puts tables of
FILE into docs/research/figures.md.

What runs is the deepum that this Python imports, which is said first: an installed one, unless
PYTHONPATH names a checkout that is built.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from ablation_cases import MECHANISMS, ROWS, SWEPT, TINY, UNLIMITED, Case, sweep_rows
from ablation_report import draw, page, sweep_table, table
from ablation_results import Results, figures
from kept import add_costs
from main_job import ROOT, JobError, machine, run, say

import deepum
from deepum.machines import named
from deepum.simulate.driver import BAND

PAGE = ROOT / "docs" / "research" / "figures.md"
MODES = {"gated": "--no-sync", "lock-step": "--sync"}


@dataclass(frozen=True)
class Setup:
    """What all runs share. mode: a key of MODES; costs: one of BAND."""

    mode: str
    costs: str


class Progress:
    """A bar over the steps of many runs; without a terminal, the scripts' lines."""

    def __init__(self, steps: int) -> None:
        self.shown = sys.stderr.isatty()
        self.bar = click.progressbar(length=steps, file=sys.stderr, width=30)
        self.passed = 0  # steps of the runs that are over
        self._show(0)

    def begin(self, name: str) -> None:
        self.bar.label = name
        self._show(0)

    def tell(self, line: str) -> None:
        if not self.shown:
            say(line)
        self._show(1 if "] step " in line else 0)

    def end(self, steps: int) -> None:
        """Of a run, whether it made its steps, failed, or was there already."""
        self.passed += steps
        self._show(self.passed - self.bar.pos)
        if self.shown and self.passed == self.bar.length:
            self.bar.render_finish()

    def _show(self, steps: int) -> None:
        if self.shown:
            self.bar.update(steps)
            self.bar.render_progress()


def run_case(
    results: Results,
    what: str,
    case: Case,
    rows: dict[str, list[str]],
    progress: Progress,
    setup: Setup,
) -> dict[str, Any]:
    """The case's record, with the runs that it lacked. A failure is written down in it."""
    preset = machine(case.machine)
    changed = BAND[setup.costs].figures(named(case.machine).native())
    memory = int(case.gibibytes * 2**30) if case.gibibytes else int(preset["memory_bytes"])
    record = results.open(what, case, preset | changed, memory, setup.mode, setup.costs)
    with tempfile.TemporaryDirectory(prefix="deepum-ablation-") as folder:
        device = Path(folder) / f"{case.machine}-{setup.costs}.json"
        device.write_text(json.dumps({"like": case.machine, **changed}), encoding="utf-8")
        for row, given in rows.items():
            card = "1TiB" if row == UNLIMITED else str(memory)
            options = ["--gpu-memory", card, MODES[setup.mode], *given]
            name = f"{case.name}: {row}"
            if row in record["rows"] and record["rows"][row]["options"] == options:
                progress.end(case.steps)
                continue
            progress.begin(name)
            errors = Path(folder) / "errors"
            record["failed"].pop(row, None)
            record["rows"].pop(row, None)
            try:
                record["rows"][row] = figures(
                    run(
                        name,
                        ["--device", f"sim:{device}", *options],
                        case.command,
                        progress.tell,
                        errors,
                    ),
                    options,
                    case.warm_up,
                )
            except JobError as error:
                messages = (
                    errors.read_text(encoding="utf-8", errors="replace").splitlines()
                    if errors.exists()
                    else []
                )
                record["failed"][row] = " | ".join([str(error), *messages[-1:]])
            record["rows"] = {
                known: record["rows"][known] for known in rows if known in record["rows"]
            }
            results.keep(record)
            progress.end(case.steps)
    results.keep(record)
    return record


def cases_of(what: str, only: str | None, tiny: bool, steps: int | None) -> list[Case]:
    """Those asked for."""
    found = [TINY] if tiny else MECHANISMS if what == "mechanisms" else SWEPT
    chosen = [case for case in found if only is None or only in case.name]
    if not chosen:
        raise JobError(
            f"--only: no case has '{only}' in its name; there are "
            f"{', '.join(case.name for case in found)}"
        )
    return [case.with_steps(steps) if steps is not None else case for case in chosen]


def make(what: str, cases: list[Case], results: Results, plot: Path | None, setup: Setup) -> int:
    """Runs and prints them; how many rows failed."""
    say(f"measured is {Path(deepum.__file__).parent}")
    rows = {UNLIMITED: ["--policy", "on-demand"], **ROWS} if what == "mechanisms" else sweep_rows()
    progress = Progress(sum(case.steps for case in cases) * len(rows))
    records = []
    for case in cases:
        records.append(run_case(results, what, case, rows, progress, setup))
        print(table(records[-1]) if what == "mechanisms" else sweep_table(records[-1]), flush=True)
    results.merge()
    if plot is not None:
        draw(records, plot)
    return sum(len(record["failed"]) for record in records)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("mechanisms", "degrees", "page"))
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=Path,
        help="all figures; runs that are in there are not repeated",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        type=Path,
        help="of `degrees`: SVG, PNG or PDF, by the file's ending",
    )
    parser.add_argument("--only", metavar="TEXT", help="cases whose name contains it")
    parser.add_argument(
        "--steps", type=int, help="of each run; by default what each case takes to settle"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="a model that takes seconds, to try the script"
    )
    parser.add_argument("--mode", choices=MODES, default="gated", help="(%(default)s)")
    add_costs(parser)
    given = parser.parse_args()
    try:
        results = Results(given.json)
        if given.what == "page":
            PAGE.write_text(page(results, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
            return
        cases = cases_of(given.what, given.only, given.tiny, given.steps)
        failed = make(given.what, cases, results, given.plot, Setup(given.mode, given.costs))
    except JobError as error:
        sys.exit(f"deepum: error: {error}")
    if failed:
        sys.exit(
            f"deepum: error: {failed} runs failed: see the table; the same command tries them again"
        )


if __name__ == "__main__":
    main()
