"""What all tests share: an isolated runtime folder, the paths of the installed package, and the
marks that skip.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
SITE = PROGRAMS / "site"
sys.path.append(str(ROOT / "tests" / "tools"))  # what tests of several folders share
# Under scripts/sanitize: what is preloaded into every program, and what native sources are compiled
# with.
SANITIZER_PRELOAD = (
    tuple(os.environ.get("DEEPUM_TEST_PRELOAD", "").split(":"))
    if os.environ.get("DEEPUM_TEST_PRELOAD")
    else ()
)
SANITIZER_FLAGS = tuple(os.environ.get("DEEPUM_TEST_FLAGS", "").split())


def _has_torch() -> bool:
    if os.environ.get("DEEPUM_TEST_TORCH", "1") == "0":
        return False
    return (
        importlib.util.find_spec("torch") is not None
        and importlib.util.find_spec("transformers") is not None
    )


def pytest_configure(config: pytest.Config) -> None:
    """Who runs tests has the sanitizer's runtime already, and the compilers that it starts do
    without; workers that it starts cannot.

    A shell has what it runs in the background ignore SIGINT, and so would each program that a test
    starts.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if SANITIZER_PRELOAD and config.getoption("dist", "no") == "no":
        os.environ.pop("LD_PRELOAD", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `torch` and `gpu` need what their marks say. Where DEEPUM_TEST_REQUIRE names a
    mark, they run in any case.
    """
    required = os.environ.get("DEEPUM_TEST_REQUIRE", "").split(",")
    missing = {"torch": not _has_torch(), "gpu": not Path("/dev/nvidiactl").exists()}
    for item in items:
        for mark, absent in missing.items():
            if item.get_closest_marker(mark):
                item.add_marker(
                    pytest.mark.skipif(absent and mark not in required, reason=f"needs {mark}")
                )


@pytest.fixture(scope="session")
def sanitizer_flags() -> tuple[str, ...]:
    """What native sources of ours are compiled with; empty without a sanitizer."""
    return SANITIZER_FLAGS


@pytest.fixture(scope="session")
def preloading() -> Callable[..., dict[str, str]]:
    """The environment that preloads these libraries, behind a sanitizer's runtime if there
    is one.
    """

    def preloading(*libraries: object) -> dict[str, str]:
        names = [*SANITIZER_PRELOAD, *map(str, libraries)]
        return {"LD_PRELOAD": ":".join(names)} if names else {}

    return preloading


@pytest.fixture(scope="session")
def package() -> Path:
    """The folder of the deepum package under test."""
    import deepum

    return Path(deepum.__file__).resolve().parent


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """A runtime folder of this test alone; its daemon is ended afterwards. A short name: a Unix
    socket's path has at most 107 bytes.
    """
    with tempfile.TemporaryDirectory(prefix="deepum-t-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        yield folder
        for process in _daemons_of(folder):
            try:
                os.kill(process, 15)
            except ProcessLookupError:
                continue


def _daemons_of(folder: Path) -> list[int]:
    """Processes that hold a lock of the folder open: daemons, of whatever installation."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(_is_lock(fd.readlink(), folder) for fd in (process / "fd").iterdir()):
                    found.append(int(process.name))
            except OSError:
                continue
    return found


def _is_lock(path: Path, folder: Path) -> bool:
    return path.parent == folder and path.name.startswith("daemon-") and path.suffix == ".lock"


@pytest.fixture
def environment(runtime_dir: Path, preloading: Callable[..., dict[str, str]]) -> dict[str, str]:
    """An environment without any DEEPUM_* or preload of the caller's, with a runtime folder of its
    own and a daemon that ends soon.
    """
    made = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("DEEPUM_") and name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")
    }
    path = os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH")]))
    return (
        made
        | preloading()
        | {"PYTHONPATH": path, "DEEPUM_RUNTIME_DIR": str(runtime_dir), "DEEPUM_DAEMON_IDLE": "20"}
    )


@pytest.fixture
def deepum(
    environment: dict[str, str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the `deepum` command: deepum("run", "--", "true", env={...}, timeout=...)."""

    def run(
        *arguments: object,
        env: dict[str, str] | None = None,
        timeout: float = 120,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "deepum", *map(str, arguments)]
        return subprocess.run(
            command,
            env=environment | (env or {}),
            cwd=cwd or tmp_path,
            text=True,
            capture_output=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture(scope="session")
def cuda_include() -> Path:
    """The folder of cuda.h."""
    from headers import folder_of

    folder = folder_of("cuda.h", "cu13")
    if not folder:
        raise FileNotFoundError("cuda.h: pip install nvidia-cuda-runtime nvidia-cuda-crt")
    return folder


@pytest.fixture(scope="session")
def compile_program(
    tmp_path_factory: pytest.TempPathFactory, cuda_include: Path, package: Path
) -> Callable[..., Path]:
    """Compiles a C file of tests/programs (or any path): compile_program("x.c", shared=True,
    link_cuda=True, flags=[...]).
    """
    folder = tmp_path_factory.mktemp("programs")

    def build(
        source: str | Path,
        *,
        shared: bool = False,
        link_cuda: bool = False,
        flags: tuple[str, ...] = (),
    ) -> Path:
        path = PROGRAMS / source
        target = folder / (
            f"{path.stem}-{abs(hash((str(path), shared, link_cuda, flags))):x}{'.so' if shared else ''}"
        )
        if not target.exists():
            command = [
                "gcc",
                "-O1",
                "-g",
                "-Wall",
                "-o",
                str(target),
                str(path),
                f"-I{cuda_include}",
                f"-I{ROOT / 'native' / 'simgpu'}",
            ]
            command += ["-shared", "-fPIC"] if shared else []
            command += [f"-L{package / 'sim'}", "-l:libcuda.so.1"] if link_cuda else []
            subprocess.run([*command, *flags, "-lpthread", "-ldl", "-lm"], check=True)
        return target

    return build
