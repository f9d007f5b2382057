"""The sanitizers see into each library: what is wrong there is found. Without this, silence would
say nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parent.parent.parent
SANITIZER = os.environ.get("DEEPUM_TEST_SANITIZER", "none")
by_address = pytest.mark.skipif(SANITIZER != "address", reason="needs scripts/sanitize address")
by_thread = pytest.mark.skipif(SANITIZER != "thread", reason="needs scripts/sanitize thread")
ROOMS = [(False, "native/simgpu/cuda/"), (True, "kernel_hooks/")]

SMALL_BUFFER = """
from deepum._core import ffi, lib
settings = ffi.new("deepum_core_settings *")
lib.deepum_core_default_settings(settings)
core = lib.deepum_core_create(settings)
lib.deepum_core_process(core, ffi.new("uint8_t[8]", b"\\x04"), 4096)
"""


UNNOTICED = """
import os, subprocess
def test_that_does_not_look():
    subprocess.run([{program!r}, {mistake!r}], env=os.environ | {{"LD_LIBRARY_PATH": {libraries!r}, "LD_PRELOAD": {preload!r}}})
"""


@pytest.fixture
def reported(run: Run, tmp_path: Path) -> Callable[..., str]:
    """Runs a command that a sanitizer ends; what it reported. Its findings are not among those that
    scripts/sanitize counts.
    """

    def reported(*command: object, shim: bool = False) -> str:
        log = f":detect_leaks=1:log_path={tmp_path / 'finding'}"
        variables = {
            name: os.environ.get(name, "") + log
            for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
        }
        ran = run(
            *command,
            shim=shim,
            leaks=True,
            env=variables
            | {"DEEPUM_DAEMON": "/bin/false", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        )
        assert ran.returncode != 0, ran.stderr
        # Next to UndefinedBehaviorSanitizer, the one for leaks writes only its last line to the
        # file.
        return ran.stderr + "".join(path.read_text() for path in tmp_path.glob("finding.*"))

    return reported


@pytest.fixture(scope="module")
def program(compile_program: Callable[..., Path]) -> Path:
    return compile_program("sanitizer_findings.c", link_cuda=True)


@pytest.mark.skipif(SANITIZER == "none", reason="needs scripts/sanitize")
def test_a_finding_that_no_test_looks_at_is_a_failure(
    program: Path, package: Path, preloading: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    test = tmp_path / "test_unnoticed.py"
    mistake = "race" if SANITIZER == "thread" else "overflow"
    preload = preloading()["LD_PRELOAD"]
    test.write_text(
        UNNOTICED.format(
            program=str(program), mistake=mistake, libraries=str(package / "sim"), preload=preload
        )
    )
    variables = {"PYTHON": sys.executable, "DEEPUM_TEST_REPORTS": str(tmp_path / "reports")}
    command: list[str | Path] = [ROOT / "scripts" / "sanitize", SANITIZER, "-q", test]
    ran = subprocess.run(
        command,
        env=os.environ | variables,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert "1 passed" in ran.stdout and ran.returncode == 1
    assert f"deepum: error: {SANITIZER} sanitizer: 1 processes with findings" in ran.stderr


@pytest.mark.skipif(SANITIZER == "none", reason="needs scripts/sanitize")
def test_every_library_is_instrumented(package: Path) -> None:
    marks = {
        "address": {"__asan_init", "__ubsan_handle_type_mismatch_v1_abort"},
        "thread": {"__tsan_init", "__tsan_func_entry"},
    }[SANITIZER]
    libraries = [*package.glob("lib/*.so"), *package.glob("sim/*.so.*"), *package.glob("_core*.so")]
    assert len(libraries) == 12
    for library in libraries:
        listing = subprocess.run(
            ["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True
        ).stdout
        assert marks <= {line.split()[-1] for line in listing.splitlines()}, library


@by_address
@pytest.mark.parametrize(("shim", "source"), ROOMS)
def test_an_overflow_is_found(
    reported: Callable[..., str], program: Path, shim: bool, source: str
) -> None:
    report = reported(program, "overflow", shim=shim)
    assert "heap-buffer-overflow" in report and source in report.split("#1")[0]


@by_address
def test_an_overflow_in_the_core_is_found(reported: Callable[..., str]) -> None:
    report = reported(sys.executable, "-P", "-c", SMALL_BUFFER)
    assert "heap-buffer-overflow" in report and "native/core/" in report.split("allocated by")[0]


@by_address
def test_a_leak_is_found(reported: Callable[..., str], program: Path) -> None:
    assert "LeakSanitizer: detected memory leaks" in reported(program, "leak", shim=True)


@by_address
def test_undefined_behaviour_is_found(
    reported: Callable[..., str],
    compile_program: Callable[..., Path],
    sanitizer_flags: tuple[str, ...],
    tmp_path: Path,
) -> None:
    (tmp_path / "shift.c").write_text(
        "int main(int count, char** unused) { (void)unused; return 1 << (count + 63) ? 0 : 0; }\n"
    )
    report = reported(compile_program(tmp_path / "shift.c", flags=sanitizer_flags))
    assert "runtime error: shift exponent 64 is too large" in report


@by_thread
@pytest.mark.parametrize(("shim", "source"), ROOMS)
def test_a_race_is_found(
    reported: Callable[..., str], program: Path, shim: bool, source: str
) -> None:
    report = reported(program, "race", shim=shim)
    assert "data race" in report and source in report
