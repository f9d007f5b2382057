"""What a hooked launch costs on top of the bare call: nanoseconds and instructions, the daemon
attached in a process of its own.

The driver is one that does nothing (tests/programs/hook_fake_libcuda.c), so that the bare call is
bare and event records for progress markers cost a function call only; everything else is as in a
real run. Clocks on shared machines are noisy: the best of several rounds is taken, and callgrind's
instruction counts, which are not noisy, stand beside them.

    python benchmarks/hook_cost.py [--shim FILE] [--no-daemon] [--instructions]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deepum.paths import daemon_files

ROOT = Path(__file__).resolve().parent.parent
CASES = [  # (what, pointers, launches a round, threads)
    ("8 pointers", 8, 100_000, 1),
    ("448 pointers, foreach", 448, 10_000, 1),
    ("8 pointers, 4 threads", 8, 25_000, 4),
]
TARGET_NS = 150.0


def cuda_include() -> Path:
    import nvidia  # type: ignore[import-untyped]

    return next(
        Path(folder) / "cu13" / "include"
        for folder in nvidia.__path__
        if (Path(folder) / "cu13" / "include" / "cuda.h").exists()
    )


def build(folder: Path) -> Path:
    driver = [
        "gcc",
        "-O2",
        "-w",
        "-shared",
        "-fPIC",
        "-Wl,-Bsymbolic",
        "-Wl,-soname,libcuda.so.1",
        f"-I{cuda_include()}",
    ]
    subprocess.run(
        [*driver, ROOT / "tests/programs/hook_fake_libcuda.c", "-o", folder / "libcuda.so.1"],
        check=True,
    )
    program = folder / "hook_cost"
    subprocess.run(
        ["gcc", "-O2", ROOT / "benchmarks/hook_cost.c", "-o", program, "-ldl", "-lpthread"],
        check=True,
    )
    return program


def launch_ns(
    program: Path, environment: dict[str, str], pointers: int, launches: int, threads: int
) -> float:
    arguments = [str(program), str(pointers), str(launches), str(threads), "7"]
    return float(
        subprocess.run(
            arguments, env=environment, check=True, capture_output=True, text=True
        ).stdout
    )


def instructions(program: Path, environment: dict[str, str], pointers: int) -> float:
    """Per launch, by the difference between two runs."""
    counts = []
    for launches in (2_000, 12_000):
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            str(program),
            str(pointers),
            str(launches),
            "1",
            "1",
        ]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found = re.search(r"Collected : (\d+)", done.stderr)
        assert found, done.stderr
        counts.append(int(found[1]))
    return (counts[1] - counts[0]) / 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shim", type=Path, help="the installed one, unless given")
    parser.add_argument("--no-daemon", action="store_true", help="measure the hooks alone")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions with callgrind too (slow)"
    )
    options = parser.parse_args()
    deepum = [sys.executable, "-P", "-m", "deepum"]  # -P: the installed package, also in a checkout
    shim = options.shim or Path(
        subprocess.run([*deepum, "path"], capture_output=True, text=True, check=True).stdout.strip()
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(folder)
        run_dir = folder / "run"
        run_dir.mkdir(mode=0o700)
        bare = {key: value for key, value in os.environ.items() if not key.startswith("DEEPUM_")}
        bare["LD_LIBRARY_PATH"] = str(folder)
        hooked = {
            **bare,
            "LD_PRELOAD": str(shim),
            "DEEPUM_RUNTIME_DIR": str(run_dir),
            "DEEPUM_DAEMON": "/bin/false",
        }
        daemon = None
        if not options.no_daemon:
            # Of the shim's own installation: no other one serves it.
            environment = {
                **bare,
                "DEEPUM_RUNTIME_DIR": str(run_dir),
                "PYTHONPATH": str(shim.resolve().parents[2]),
            }
            socket = daemon_files(run_dir, shim).socket
            daemon = subprocess.Popen(
                [*deepum, "daemon"], env=environment, stderr=subprocess.DEVNULL
            )
            deadline = time.monotonic() + 20
            while not socket.exists() and time.monotonic() < deadline and daemon.poll() is None:
                time.sleep(0.05)
            if not socket.exists():
                print(
                    (
                        "deepum: error: daemon: did not start; use --no-daemon to measure the "
                        "hooks alone"
                    ),
                    file=sys.stderr,
                )
                return 1
        try:
            print(
                f"{'launch with':24s} {'bare ns':>9s} {'hooked ns':>10s} {'added ns':>9s}"
                + ("  added instructions" if options.instructions else "")
            )
            added_first = 0.0
            for what, pointers, launches, threads in CASES:
                below = launch_ns(program, bare, pointers, launches, threads)
                above = launch_ns(program, hooked, pointers, launches, threads)
                line = f"{what:24s} {below:9.1f} {above:10.1f} {above - below:9.1f}"
                if options.instructions and threads == 1 and shutil.which("valgrind"):
                    added = [instructions(program, way, pointers) for way in (hooked, bare)]
                    line += f" {added[0] - added[1]:19.0f}"
                print(line, flush=True)
                added_first = added_first or above - below
            print(
                f"target for 8 pointers: {TARGET_NS:.0f} ns: "
                f"{'met' if added_first <= TARGET_NS else 'missed'}"
            )
        finally:
            if daemon:
                daemon.terminate()
                daemon.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
