"""Measurements on the simulated GPU, by PyTorch's CUDA build, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kept import ROOT

from deepum.errors import DeepumError


def measured_apart(
    script: str,
    arguments: Sequence[str],
    machine: str,
    name: str,
    *,
    options: Sequence[str] = (),
    is_unified: bool = False,
) -> Any:
    """What a benchmark's script writes to its `--json FILE`, run with arguments on that machine.
    name: of the measurement, for errors. options: of `deepum run`. is_unified: its memory is
    unified memory, not plain device memory. Raises DeepumError.
    """
    with tempfile.TemporaryDirectory(prefix="deepum-benchmark-") as folder:
        file = Path(folder) / "found.json"
        command = [sys.executable, "-P", "-m", "deepum", "run", "--device", f"sim:{machine}"]
        command += [*options, "--"]
        command += [sys.executable, str(Path(script).resolve()), *arguments, "--json", str(file)]
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        if not is_unified:
            environment["DEEPUM_DISABLE"] = "1"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if not line.startswith("deepum: ")]
            raise DeepumError(f"{name}: {lines[-1] if lines else f'exit code {done.returncode}'}")
        return json.loads(file.read_text(encoding="utf-8"))
