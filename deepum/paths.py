"""Where things are: the package's libraries and the user's runtime folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepum.errors import DeepumError

PACKAGE = Path(__file__).resolve().parent
SHIM = PACKAGE / "lib" / "libdeepum.so"
ARENA_ALLOCATOR = PACKAGE / "lib" / "libdeepum_arena.so"
STARTUP = PACKAGE / "startup"  # of a program's Python
SIMULATOR = PACKAGE / "sim"
# PyTorch finds its own copies of these by RPATH, which only a preload overrides. Of CUDA 12 and 13
# both: a program takes those that it was linked with, by their names and by the versions of their
# symbols (docs/simulated-gpu.md, CUDA 12 and 13).
SIMULATOR_PRELOADS = tuple(
    f"{name}.so.{major}"
    for major in (13, 12)
    for name in ("libcudart", "libcublas", "libcublasLt", "libcupti")
)


def _built(library: Path, what: str = "is") -> Path:
    if not library.is_file():
        raise DeepumError(
            f"{library}: {what} missing from this installation; reinstall deepum, or run "
            f"scripts/build in a checkout"
        )
    return library


def shim() -> Path:
    """The shim's library. Raises DeepumError when it was not built."""
    return _built(SHIM, "the shim is")


def arena_allocator() -> Path:
    """The allocator's that PyTorch loads. Raises DeepumError when it was not built."""
    return _built(ARENA_ALLOCATOR)


def simulator_preloads() -> list[Path]:
    """The simulated GPU's libraries to preload. Raises DeepumError when they were not built."""
    libraries = [SIMULATOR / name for name in SIMULATOR_PRELOADS]
    for library in (SIMULATOR / "libcuda.so.1", *libraries):
        _built(library)
    return libraries


def runtime_folder(environment: Mapping[str, str]) -> Path:
    """The user's runtime folder, as the shim computes it too (docs/architecture.md, A session)."""
    if given := environment.get("DEEPUM_RUNTIME_DIR"):
        return Path(given)
    if given := environment.get("XDG_RUNTIME_DIR"):
        return Path(given) / "deepum"
    return Path(f"/tmp/deepum-{os.getuid()}")


@dataclass(frozen=True)
class DaemonFiles:
    """What one installation's daemon has in a runtime folder."""

    socket: Path
    lock: Path
    making: Path  # the socket until somebody listens


def daemon_files(folder: Path, library: Path = SHIM) -> DaemonFiles:
    """Those of the installation of this shim, as it is now: by its path, size and last change (as
    native/runtime/installation.cpp).
    """
    library = library.resolve()
    try:
        status = library.stat()
        change = (status.st_size, *divmod(status.st_mtime_ns, 10**9))
    except OSError:
        change = (0, 0, 0)
    value = 0xCBF29CE484222325
    for byte in os.fsencode(library) + b" %d %d.%09d" % change:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    name = f"daemon-{(value ^ value >> 32) & 0xFFFFFFFF:08x}"
    return DaemonFiles(*(folder / f"{name}.{kind}" for kind in ("sock", "lock", "new")))


def make_private_folder(folder: Path) -> None:
    """Creates the folder, mode 0700, or checks that it is ours and nobody else's. Raises
    DeepumError.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise DeepumError(
            f"{folder}: {error.strerror}; set DEEPUM_RUNTIME_DIR to a folder of your own"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise DeepumError(f"{folder}: is not a folder of your own; set DEEPUM_RUNTIME_DIR to one")
    if status.st_mode & 0o077:
        # A folder that others can write to could have been prepared by them; one that we own can be
        # closed.
        folder.chmod(0o700)
