"""Asks the driver through a process of its own (probe.py), and waits for no longer than a person
would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """What the driver told, as far as it came; `trouble`: why there is no more, None when all went
    well.
    """

    known: dict[str, Any] = field(default_factory=dict)
    trouble: str | None = None
    hung: bool = False
    bindings: bool = True  # cuda-bindings are installed


def ask(
    environment: Mapping[str, str], simulated: bool, ordinal: int = 0, seconds: float = SECONDS
) -> Answer:
    """The driver that a program with this environment finds."""
    command = [
        sys.executable,
        "-P",
        "-m",
        "deepum.doctor.probe",
        str(ordinal),
        "simulated" if simulated else "real",
    ]
    # Where this process found its packages, the other one does too.
    paths = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(
        command,
        env={**environment, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    hung = False
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        hung = True
        process.kill()  # one that the driver holds in the kernel stays: it is not waited for
        try:
            out, err = process.communicate(timeout=2)
        except subprocess.TimeoutExpired as late:
            out, err = _text(late.stdout), _text(late.stderr)
    known = _last(out)
    trouble = known.pop("error", None)
    if hung:
        trouble = f"the driver did not answer within {seconds:.0f} s"
    elif trouble is None and process.returncode != 0:
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "no message")
        trouble = (
            f"the process that asked the driver ended with {process.returncode}: {last.strip()}"
        )
    return Answer(known, trouble, hung, "No module named 'cuda" not in err)


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def _last(out: str) -> dict[str, Any]:
    for line in reversed(out.splitlines()):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict):
            return document
    return {}
