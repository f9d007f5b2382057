"""A copy of the sources with a build of its own, in which pieces of the sources are replaced: what
does the project do without them?
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import deepum

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "native",
    "kernel_hooks",
    "deepum",
    "scripts",
    "CMakeLists.txt",
    "CMakePresets.json",
    "pyproject.toml",
    "README.md",
)
# What is built from the sources of a folder.
TARGETS = {
    "native/core": "_core",
    "native/mover": "deepum_shim",
    "native/runtime": "deepum_shim",
    "kernel_hooks": "deepum_shim",
}


class Edit(Protocol):
    """A replacement; `old` occurs once in `file`, which is relative to the root of the sources."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...


def _target(file: str) -> str:
    return next(target for folder, target in TARGETS.items() if file.startswith(folder + "/"))


class EditedCopy:
    """A copy of the sources and of the package as it was built, with a build folder of its own,
    where only what changes is built again.
    """

    def __init__(self, folder: Path, besides: Sequence[str] = (), flags: str = "-O1") -> None:
        """A folder that holds a copy already is brought up to date. besides: more that is copied.
        flags: of the compiler.
        """
        self.root = folder / "tree"
        self._flags = flags
        for name in (*SOURCES, *besides):
            for source in (
                [ROOT / name] if (ROOT / name).is_file() else sorted((ROOT / name).rglob("*"))
            ):
                if source.is_file() and ".so" not in source.suffixes and source.suffix != ".pyc":
                    self._put(source)
        self._put_package()

    def _put_package(self, built: Collection[str] = ()) -> None:
        """The libraries without any edit, but for those targets."""
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
    def edited(self, edits: Sequence[Edit], build: bool = True) -> Iterator[None]:
        """The copy with these edits. Exits the program if a text is not in its file once, or if the
        build fails.
        """
        before: dict[Path, str] = {}
        try:
            for edit in edits:
                path = self.root / edit.file
                text = path.read_text()
                if text.count(edit.old) != 1:
                    raise SystemExit(
                        f"deepum: error: {edit.name}: its text is not in {edit.file} once; "
                        f"bring the edit up to date"
                    )
                before.setdefault(path, text)
                path.write_text(text.replace(edit.old, edit.new))
            if edits and build:
                self._build(sorted({_target(edit.file) for edit in edits}))
            yield
        finally:
            for path, text in before.items():
                path.write_text(text)
            self._put_package()

    def environment(self) -> dict[str, str]:
        """Of a Python that imports the copy's package."""
        return os.environ | {"PYTHONPATH": str(self.root)}

    def _build(self, targets: list[str]) -> None:
        # Without warnings, which would be errors: what an edit leaves may be unused.
        environment = os.environ | {
            "PYTHON": sys.executable,
            "CMAKE_BUILD_TYPE": "None",
            "CXXFLAGS": f"{self._flags} -w",
        }
        ran = subprocess.run(
            [self.root / "scripts" / "build", "build/edited", *targets],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise SystemExit(
                f"deepum: error: build of {self.root}: {(ran.stdout + ran.stderr)[-2000:]}"
            )
        # The build folder may hold another edit of what was not asked for, and all of it is
        # installed.
        self._put_package(targets)
