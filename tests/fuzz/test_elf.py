"""The reader of symbol tables (native/simgpu/cudart/elf_functions.hpp) and damaged files: it sees
less, and nothing else happens.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = 40


def test_a_damaged_object_has_fewer_functions(
    compile_program: Callable[..., Path], sanitizer_flags: tuple[str, ...], tmp_path: Path
) -> None:
    cudart = ROOT / "native" / "simgpu" / "cudart"
    flags = (
        "-std=gnu++20",
        *sanitizer_flags,
        f"-I{cudart}",
        str(cudart / "elf_functions.cpp"),
        "-lstdc++",
    )
    harness = compile_program("elf_harness.cpp", flags=flags)
    source = tmp_path / "object.c"
    parts = (
        f"__attribute__((noinline)) static int part_{i}(int x) {{ return x * {i}; }}"
        for i in range(FUNCTIONS)
    )
    calls = " + ".join(f"part_{i}(x)" for i in range(FUNCTIONS))
    source.write_text("\n".join(parts) + f"\nint all(int x) {{ return {calls}; }}\n")
    target = compile_program(source, shared=True)
    done = subprocess.run(
        [harness, target, "1", "1000", tmp_path / "copy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    whole, most = map(int, done.stdout.split())
    assert whole == FUNCTIONS
    assert 0 < most <= FUNCTIONS
