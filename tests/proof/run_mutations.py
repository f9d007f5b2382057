"""Is the proof a proof? Takes one edge or check after another out of a copy of the sources, builds it, and lets the random programs fail.

Usage: python tests/proof/run_mutations.py [NAME...]    (all of them without a name; exit code 1: one lives that must not)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutations import MUTATIONS, Mutation

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = ("native", "kernel_hooks", "deepum", "scripts", "CMakeLists.txt", "pyproject.toml", "README.md", "tests/proof")
PROGRAMS = 2000
TARGETS = ("deepum_shim", "_core")  # what a mutation can change; the simulated GPU stays as it was built first


class Copy:
    """A copy of the sources with a build of its own, kept between mutations, so that each takes seconds."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.built = False
        for name in SOURCES:
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.so.*"))
            else:
                shutil.copy2(source, target)
        lists = self.root / "CMakeLists.txt"
        lists.write_text(lists.read_text().replace(" -Werror", ""))  # what a mutation leaves may be unused

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation | None) -> Iterator[None]:
        """The copy with the mutation, built."""
        if mutation is None:
            self.build()
            yield
            return
        before: dict[Path, str] = {}
        try:
            for edit in mutation.edits():
                path = self.root / edit.file
                text = path.read_text()
                if text.count(edit.old) != 1:
                    raise SystemExit(
                        f"deepum: error: mutation {edit.name}: its text is not in {edit.file} once; bring mutations.py up to date"
                    )
                before.setdefault(path, text)
                path.write_text(text.replace(edit.old, edit.new))
            self.build(*(TARGETS if self.built else ()))
            yield
        finally:
            for path, text in before.items():
                path.write_text(text)

    def build(self, *targets: str) -> None:
        """As scripts/build; without targets all of it."""
        environment = os.environ | {"PYTHON": sys.executable}
        ran = subprocess.run(
            [self.root / "scripts" / "build", "build/mutations", *targets], env=environment, capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise SystemExit(f"deepum: error: build of {self.root}: {(ran.stdout + ran.stderr)[-2000:]}")
        self.built = True

    def programs_until_failure(self, programs: int, seed: int) -> tuple[int | None, str]:
        """So many programs were run when one failed, and what it said; None: none did."""
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        command = [sys.executable, "-P", str(self.root / "tests" / "proof" / "run_until_failure.py"), str(programs), str(seed)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=self.root.parent)
        if ran.returncode not in (0, 1):
            raise SystemExit(f"deepum: error: {command}: {ran.stderr[-2000:]}")
        count, _, said = ran.stdout.partition(" ")
        return (int(count) if ran.returncode == 1 else None), said.strip()


def run(mutations: Sequence[Mutation], programs: int = PROGRAMS, seed: int = 0) -> list[Mutation]:
    """Prints what becomes of each; gives those that live though they must not."""
    alive: list[Mutation] = []
    with tempfile.TemporaryDirectory(prefix="deepum-mutations-") as folder:
        copy = Copy(Path(folder))
        for mutation in mutations:
            with copy.mutated(mutation):
                count, said = copy.programs_until_failure(programs, seed)
            if count is None:
                alive += [] if mutation.survives else [mutation]
                print(f"{mutation.name}: lives after {programs} programs; {mutation.survives or 'MUST NOT'}", flush=True)
            else:
                unexpected = " (expected to live: bring mutations.py up to date)" if mutation.survives else ""
                print(f"{mutation.name}: noticed within {count} programs: {said}{unexpected}", flush=True)
    return alive


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutations.py")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no mutation {', '.join(unknown)}; there are {', '.join(known)}")
    return 1 if run([known[name] for name in options.names or known], options.programs, options.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
