"""Is the proof a proof? Takes one edge or check after another out of a copy of the sources; the random programs, or a test, must fail.

Usage: python tests/proof/run_mutations.py [NAME...]    (all of them without a name; exit code 1: one lives that must not)

The sources as they are come first: nothing may fail there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from mutations import MUTATIONS, Mutation

import deepum

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = (
    *("native", "kernel_hooks", "deepum", "scripts", "CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "README.md"),
    *("tests/conftest.py", "tests/proof", "tests/tools", "tests/runtime", "tests/programs"),
)
PROGRAMS = 2000
# What a mutation can change.
TARGETS = {"native/core": "_core", "native/mover": "deepum_shim", "native/runtime": "deepum_shim", "kernel_hooks": "deepum_shim"}


def _target(file: str) -> str:
    """What is built from that source."""
    return next(target for folder, target in TARGETS.items() if file.startswith(folder + "/"))


class Copy:
    """A copy of the sources and of the package as it was built, with a build folder of its own, where only what changes is built again."""

    def __init__(self, folder: Path) -> None:
        """A folder that holds a copy already is brought up to date; what is the same is not built again."""
        self.root = folder / "tree"
        for name in SOURCES:
            for source in [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*")):
                if source.is_file() and ".so" not in source.suffixes and source.suffix != ".pyc":
                    self._put(source)
        self._put_package()

    def _put_package(self, built: Collection[str] = ()) -> None:
        """The libraries without any mutation, but for those targets."""
        package, target = Path(deepum.__file__).parent, self.root / "deepum"
        for name in ("lib", "sim") if "deepum_shim" not in built else ("sim",):
            shutil.copytree(package / name, target / name, symlinks=True, dirs_exist_ok=True)
        for library in package.glob("_core*.so") if "_core" not in built else ():
            shutil.copy2(library, target)

    def _put(self, source: Path) -> None:
        target = self.root / source.relative_to(ROOT)
        content = source.read_bytes()
        if not target.is_file() or target.read_bytes() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            shutil.copymode(source, target)

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation | None) -> Iterator[None]:
        """The copy with the mutation, built if random programs are to notice it: tests of the runtime compile its sources themselves."""
        before: dict[Path, str] = {}
        try:
            for edit in mutation.edits() if mutation else ():
                path = self.root / edit.file
                text = path.read_text()
                if text.count(edit.old) != 1:
                    raise SystemExit(
                        f"deepum: error: mutation {edit.name}: its text is not in {edit.file} once; bring mutations.py up to date"
                    )
                before.setdefault(path, text)
                path.write_text(text.replace(edit.old, edit.new))
            if mutation is not None and not mutation.noticed_by:
                self._build(sorted({_target(edit.file) for edit in mutation.edits()}))
            yield
        finally:
            for path, text in before.items():
                path.write_text(text)
            self._put_package()

    def _build(self, targets: list[str]) -> None:
        # Built faster than it runs, and without warnings, which would be errors: what a mutation leaves may be unused.
        environment = os.environ | {"PYTHON": sys.executable, "CMAKE_BUILD_TYPE": "None", "CXXFLAGS": "-O1 -w"}
        ran = subprocess.run(
            [self.root / "scripts" / "build", "build/mutations", *targets], env=environment, capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise SystemExit(f"deepum: error: build of {self.root}: {(ran.stdout + ran.stderr)[-2000:]}")
        self._put_package(targets)  # the build folder may hold another mutation of what was not asked for, and all of it is installed

    def programs_until_failure(self, programs: int, seed: int) -> tuple[int | None, str]:
        """The number of the first program that failed, from 1, and what it said; None: none did."""
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        command = [sys.executable, "-P", str(self.root / "tests" / "proof" / "run_until_failure.py"), str(programs), str(seed)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=self.root.parent)
        if ran.returncode not in (0, 1):
            raise SystemExit(f"deepum: error: {command}: {ran.stderr[-2000:]}")
        count, _, said = ran.stdout.partition(" ")
        return (int(count) if ran.returncode == 1 else None), said.strip()

    def test_fails(self, test: str) -> tuple[bool, str]:
        """Whether a test fails in the copy, and what it says in the end."""
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(self.root / test)]
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=self.root)
        if ran.returncode not in (0, 1):
            raise SystemExit(f"deepum: error: {command}: {(ran.stdout + ran.stderr)[-2000:]}")
        return ran.returncode == 1, ran.stdout.strip().splitlines()[-1]


def _noticed(copy: Copy, mutation: Mutation, programs: int, seed: int) -> tuple[str | None, str]:
    """By which program or test, None: by none; and what that says."""
    if not mutation.noticed_by:
        count, said = copy.programs_until_failure(programs, seed)
        return (None if count is None else str(count)), said
    failed, said = copy.test_fails(mutation.noticed_by)
    return ("a test" if failed else None), f"{mutation.noticed_by}: {said}"


def run(mutations: Sequence[Mutation], programs: int, seed: int, folder: Path) -> list[str]:
    """Prints a line for each; gives those that live though they must not, or that fail though nothing is missing."""
    wrong: list[str] = []
    copy = Copy(folder)
    with copy.mutated(None):
        count, said = copy.programs_until_failure(programs, seed)
    print(f"{'(none)':32} {'lives' if count is None else count:>7}  {said}", flush=True)
    if count is not None:
        return ["(none)"]
    for mutation in mutations:
        with copy.mutated(mutation):
            by, said = _noticed(copy, mutation, programs, seed)
        if (by is None) != bool(mutation.survives):
            wrong.append(mutation.name)
            said = f"MUST NOT LIVE: {said}" if by is None else f"expected to live (bring mutations.py up to date): {said}"
        print(f"{mutation.name:32} {by or 'lives':>7}  {said}", flush=True)
    return wrong


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of mutations.py")
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keep the copy and its build there, for the next time")
    options = parser.parse_args()
    known = {mutation.name: mutation for mutation in MUTATIONS}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no mutation {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in options.names or known]
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deepum-mutations-")))
        return 1 if run(chosen, options.programs, options.seed, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
