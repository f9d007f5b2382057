"""Random programs on a real GPU compute what they compute on the simulated one."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_kernels_for_a_real_gpu_take_and_do_what_those_for_the_simulated_one_do(
    tmp_path: Path,
) -> None:
    includes = [
        f"-I{ROOT / folder}"
        for folder in ("benchmarks/acceptance/native", "tests/proof/executor", "native/simgpu")
    ]
    sources = ("proof_kernels_on_host.cpp", "proof_kernels_both.c")
    for source in sources:
        path, target = ROOT / "tests" / "programs" / source, tmp_path / f"{source}.o"
        compiler = "g++" if source.endswith(".cpp") else "gcc"
        subprocess.run([compiler, "-O1", "-w", *includes, "-c", path, "-o", target], check=True)
    program = tmp_path / "both"
    objects = [tmp_path / f"{source}.o" for source in sources]
    subprocess.run(["g++", *objects, "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
