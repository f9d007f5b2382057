"""docs/first-run.md shows what its program does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "first-run.md"


@pytest.mark.torch
def test_the_table_is_what_the_program_comes_to(
    deepum: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = text.partition("cat > train.py <<END\n")[2].partition("    END\n")[0].splitlines()
    program = "\n".join(line[4:] for line in lines)
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    command = re.search(r"^ +deepum (run --device .*) -- python train.py$", text, re.MULTILINE)
    assert command is not None
    told = []
    for policy in ("on-demand", "correlation"):
        options = [*command[1].split(), "--policy", policy, "--stats", f"{policy}.json"]
        assert deepum(*options, "--", sys.executable, "train.py").returncode == 0
        told.append(json.loads((tmp_path / f"{policy}.json").read_text())["last_step"])
    rows = {
        "virtual ms": [f"{step['s'] * 1e3:.1f}" for step in told],
        "of these, kernels compute": [f"{step['compute_s'] * 1e3:.1f}" for step in told],
        "faults": [str(step["faults"]) for step in told],
        "MiB to the GPU": [f"{step['bytes_h2d'] / 2**20:.0f}" for step in told],
    }
    for name, figures in rows.items():
        assert f"| {name} | {' | '.join(figures)} |" in text
