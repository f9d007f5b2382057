"""Is the proof a proof? Takes one edge or check after another out of a copy of the sources; the
random programs, or a test, must fail.

Usage: python tests/proof/run_mutations.py [NAME...]    (all of them without a name; exit code 1:
one lives that must not)

The sources as they are come first: nothing may fail there.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from edited_copy import EditedCopy
from mutations import MUTATIONS, Mutation

PROGRAMS = 2000
PROOF = ("tests/conftest.py", "tests/proof", "tests/tools", "tests/runtime", "tests/programs")


class Copy(EditedCopy):
    """A copy of the sources, the random programs with them."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PROOF)

    def mutated(self, mutation: Mutation | None) -> AbstractContextManager[None]:
        """The copy with the mutation, built if random programs are to notice it: tests of the
        runtime compile its sources themselves.
        """
        return self.edited(
            mutation.edits() if mutation else (),
            build=mutation is not None and not mutation.noticed_by,
        )

    def programs_until_failure(self, programs: int, seed: int) -> tuple[int | None, str]:
        """The number of the first program that failed, from 1, and what it said; None: none did."""
        command = [
            sys.executable,
            "-P",
            str(self.root / "tests" / "proof" / "run_until_failure.py"),
            str(programs),
            str(seed),
        ]
        ran = subprocess.run(
            command,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root.parent,
        )
        if ran.returncode not in (0, 1):
            raise SystemExit(f"deepum: error: {command}: {ran.stderr[-2000:]}")
        count, _, message = ran.stdout.partition(" ")
        return (int(count) if ran.returncode == 1 else None), message.strip()

    def test_fails(self, test: str) -> tuple[bool, str]:
        """Whether a test fails in the copy, and what it says in the end."""
        command = [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            str(self.root / test),
        ]
        ran = subprocess.run(
            command,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
        )
        if ran.returncode not in (0, 1):
            raise SystemExit(f"deepum: error: {command}: {(ran.stdout + ran.stderr)[-2000:]}")
        return ran.returncode == 1, ran.stdout.strip().splitlines()[-1]


def _noticed(copy: Copy, mutation: Mutation, programs: int, seed: int) -> tuple[str | None, str]:
    """By which program or test, None: by none; and what that says."""
    if not mutation.noticed_by:
        count, message = copy.programs_until_failure(programs, seed)
        return (None if count is None else str(count)), message
    failed, message = copy.test_fails(mutation.noticed_by)
    return ("a test" if failed else None), f"{mutation.noticed_by}: {message}"


def run(mutations: Sequence[Mutation], programs: int, seed: int, folder: Path) -> list[str]:
    """Prints a line for each; gives those that live though they must not, or that fail though
    nothing is missing.
    """
    wrong: list[str] = []
    copy = Copy(folder)
    with copy.mutated(None):
        count, message = copy.programs_until_failure(programs, seed)
    print(f"{'(none)':32} {'lives' if count is None else count:>7}  {message}", flush=True)
    if count is not None:
        return ["(none)"]
    for mutation in mutations:
        with copy.mutated(mutation):
            by, message = _noticed(copy, mutation, programs, seed)
        if (by is None) != bool(mutation.survives):
            wrong.append(mutation.name)
            message = (
                f"MUST NOT LIVE: {message}"
                if by is None
                else f"expected to live (bring mutations.py up to date): {message}"
            )
        print(f"{mutation.name:32} {by or 'lives':>7}  {message}", flush=True)
    return wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutations.py")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--folder", type=Path, help="keep the copy and its build there, for the next time"
    )
    options = parser.parse_args()
    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no mutation {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="deepum-mutations-"))
        )
        return 1 if run(chosen, options.programs, options.seed, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
