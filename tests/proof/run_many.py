"""Runs the programs of many seeds, all batches of each, and appends a line to a file for each batch
that is done.

Usage: python tests/proof/run_many.py RESULTS FIRST-LAST [--programs N] [--processes N]    (exit
code 1: a program failed)

FIRST-LAST are seeds as --proof-seed of pytest takes them; each stands for N programs and those that
`batches` adds to them. What the file has already is not run again, so that a run that was stopped
goes on. A line: seed, number of the batch, programs, `right` or `WRONG`, the batch's name, and for
a wrong one the seed of the program and what was said.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from headers import folder_of
from proof_batches import batches
from proof_running import opened

import deepum


def run_seeds(results: Path, seeds: list[int], programs: int) -> None:
    """All batches of these seeds that the file does not have yet. Several processes append to it, a
    whole line at a time.
    """
    include = folder_of("cuda.h", "cu13")
    assert include, "cuda.h: pip install nvidia-cuda-runtime nvidia-cuda-crt"
    done = {tuple(map(int, line.split()[:2])) for line in lines(results)}
    with (
        tempfile.TemporaryDirectory(prefix="deepum-many-", ignore_cleanup_errors=True) as folder,
        opened(Path(folder), include, Path(deepum.__file__).parent) as runner,
        results.open("a", buffering=1) as file,
    ):
        runner.seconds = 1800  # on a machine that is busy with other things
        for seed, batch in ((each, batch) for each in seeds for batch in batches(programs, each)):
            if (seed, batch.number) in done:
                continue
            failure = runner.failure(batch)
            wrong = f" {batch.seeds[failure[0]]} {failure[1]}" if failure else ""
            file.write(
                f"{seed} {batch.number} {len(batch.seeds)} {'WRONG' if failure else 'right'} "
                f"{batch}{wrong}\n"
            )


def lines(results: Path) -> list[str]:
    """Those of the batches that are done."""
    return (
        [line for line in results.read_text().split("\n")[:-1] if line[:1].isdigit()]
        if results.is_file()
        else []
    )


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("seeds", metavar="FIRST-LAST")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    shares = [seeds[i :: options.processes] for i in range(options.processes)]
    with ProcessPoolExecutor(options.processes) as pool:
        for share in as_completed(
            [pool.submit(run_seeds, options.results, share, options.programs) for share in shares]
        ):
            share.result()
    words = [line.split() for line in lines(options.results)]
    wrong = [line for line in lines(options.results) if line.split()[3] == "WRONG"]
    print(
        sum(int(each[2]) for each in words),
        "programs in",
        len(words),
        "batches;",
        len(wrong),
        "batches wrong",
    )
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
