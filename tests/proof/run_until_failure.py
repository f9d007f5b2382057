"""Runs random programs with the package that is imported until one fails: prints its number, from
1, and what happened.

Usage: python tests/proof/run_until_failure.py PROGRAMS SEED    (exit code 1: one failed)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

from headers import folder_of
from proof_batches import batches
from proof_running import opened

import deepum


def main(programs: int, seed: int) -> int:
    """The command."""
    count = 0
    include = folder_of("cuda.h", "cu13")
    assert include, "cuda.h: pip install nvidia-cuda-runtime nvidia-cuda-crt"
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        opened(Path(folder), include, Path(deepum.__file__).parent) as runner,
    ):
        for batch in batches(programs, seed):
            if failure := runner.failure(batch):
                print(count + failure[0] + 1, f"batch {batch}: {failure[1]}")
                return 1
            count += len(batch.seeds)
    print(count, "all end as they mean")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
